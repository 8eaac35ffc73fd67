/**
 * Runs the cases of one kind against the library.
 *
 *     node --conditions effect-agent-source harness/conformance/main.ts KIND DIR [options]
 *
 *     --only REGEX   only cases whose name matches
 *     --verbose      every problem of a case, not the first alone
 *     --whole        all there is to try, where a kind usually tries a part
 *     --dump NAME    prints what was judged for this case, as JSON
 *
 * A line for each case that fails, then `KIND: N passed, M failed`. Exit code 1 if any failed, 2 for bad arguments.
 */
import { resolve } from "node:path"
import { parseArgs } from "node:util"
import type { Case, Judged, Kind } from "./suite.ts"

const kinds: Readonly<Record<string, () => Promise<{ readonly kind: Kind }>>> = {
  golden: () => import("./golden.ts"),
  wire: () => import("./wire.ts"),
  requests: () => import("./requests.ts"),
  models: () => import("./models.ts"),
  cuts: () => import("./cuts.ts"),
  faults: () => import("./faults.ts")
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: "string", default: "" },
    verbose: { type: "boolean", default: false },
    whole: { type: "boolean", default: false },
    dump: { type: "string" }
  }
})
const [name = "", dir = ""] = positionals
const load = kinds[name]
if (load === undefined || dir === "") {
  console.error(
    `usage: main.ts ${Object.keys(kinds).join("|")} DIR [--only REGEX] [--verbose] [--whole] [--dump NAME]`
  )
  process.exit(2)
}

const { kind } = await load()
const suite = await kind(resolve(dir), { whole: values.whole })
const only = new RegExp(values.only)
const cases = suite.cases.filter(
  (each) => (values.dump === undefined || each.name === values.dump) && only.test(each.name)
)
const judged = await judgeAll(cases, suite.concurrency)
await suite.close?.()

let failed = 0
for (const [index, { problems, actual }] of judged.entries()) {
  if (values.dump !== undefined) console.log(JSON.stringify(actual, undefined, 2))
  if (problems.length === 0) continue
  failed++
  const title = cases[index]?.title ?? cases[index]?.name
  for (const problem of values.verbose ? problems : problems.slice(0, 1))
    console.log(`FAIL ${title} ${problem}`)
}
const verdicts = new Map(judged.map((verdict, index) => [cases[index]?.name ?? "", verdict]))
for (const line of suite.figures?.(verdicts) ?? []) console.log(line)
for (const line of suite.skipped ?? []) console.log(`skipped ${line}`)
console.log(`${name}: ${judged.length - failed} passed, ${failed} failed`)
// What a case left behind, such as a tool that never settles, must not keep the process alive.
process.exit(failed === 0 ? 0 : 1)

/** The verdicts in the order of the cases, `concurrency` of them at a time. */
async function judgeAll(all: ReadonlyArray<Case>, concurrency: number): Promise<ReadonlyArray<Judged>> {
  const verdicts: Array<Judged> = []
  const waiting = all.entries()
  const worker = async () => {
    for (const [index, each] of waiting) verdicts[index] = await judge(each)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return verdicts
}

async function judge(each: Case): Promise<Judged> {
  try {
    return await each.run()
  } catch (thrown) {
    return {
      problems: [`threw ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : thrown}`],
      actual: undefined
    }
  }
}
