/**
 * What people have reported of this and of other programs, input by input, with what is right. Nothing here is random.
 */
import { Effect } from "effect"
import type { Chaos, Options } from "./Chaos.ts"
import * as Chat from "./reports/chat.ts"
import * as Failures from "./reports/failures.ts"
import * as Files from "./reports/files.ts"
import type { Report } from "./reports/Report.ts"
import * as Thinking from "./reports/thinking.ts"
import * as Tools from "./reports/tools.ts"
import * as Vendors from "./reports/vendors.ts"

export const reports: Chaos = {
  count: 1,
  run: (options) => judged(options)
}

const all: ReadonlyArray<Report> = [
  ...Chat.reports,
  ...Vendors.reports,
  ...Thinking.reports,
  ...Failures.reports,
  ...Tools.reports,
  ...Files.reports
]

const judged = Effect.fnUntraced(function* ({ say }: Options) {
  const lines = yield* Effect.forEach(all, ({ seen }) => seen, { concurrency: 8 })
  const violations = all.flatMap(({ input, right, source }, at) => {
    const line = lines[at] ?? ""
    const isRight = typeof right === "string" ? line === right : right.test(line)
    const name = source === "" ? input : `${input} (${source})`
    say(`${isRight ? "right" : "WRONG"} ${name}: ${line}`)
    return isRight ? [] : [`${name}: ${line}, not ${String(right)}`]
  })
  return { figures: { inputs: all.length, right: all.length - violations.length }, violations }
})
