/**
 * `npm run chaos -- KIND [--seed N] [--count N | --minutes N] [--store NAME] [--seconds N] [--only PATTERN]`, and for durable
 * `[--workers N | --due N [--rate N | --crash] | --concurrent N --queued N,N | --cost N]`: breaks things at random, and exits with 1 if a promise
 * broke with them.
 */
import { Effect } from "effect"
import { parseArgs } from "node:util"
import { aborts } from "./aborts.ts"
import { cancel } from "./cancel.ts"
import type { Chaos, Outcome } from "./Chaos.ts"
import { defaults } from "./defaults.ts"
import { background, durable } from "./durable.ts"
import { files } from "./files.ts"
import { inject } from "./inject.ts"
import { mutants } from "./mutants.ts"
import { paths } from "./paths.ts"
import { program } from "./program.ts"
import { reports } from "./reports.ts"
import { schemas } from "./schemas.ts"
import { secrets } from "./secrets.ts"
import { server } from "./server.ts"
import { sessions } from "./sessions.ts"
import { slow } from "./slow.ts"
import { soak } from "./soak.ts"
import { storm } from "./storm.ts"
import { wire } from "./wire.ts"

/** A new kind is one more line here. */
const kinds: ReadonlyMap<string, Chaos> = new Map([
  ["aborts", aborts],
  ["background", background],
  ["cancel", cancel],
  ["defaults", defaults],
  ["durable", durable],
  ["files", files],
  ["inject", inject],
  ["mutants", mutants],
  ["paths", paths],
  ["program", program],
  ["reports", reports],
  ["schemas", schemas],
  ["secrets", secrets],
  ["server", server],
  ["sessions", sessions],
  ["slow", slow],
  ["soak", soak],
  ["storm", storm],
  ["wire", wire]
])

/** So many violations are printed. */
const shown = 20

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: "string" },
    count: { type: "string" },
    minutes: { type: "string" },
    store: { type: "string" },
    only: { type: "string" },
    seconds: { type: "string" },
    workers: { type: "string" },
    due: { type: "string" },
    rate: { type: "string" },
    crash: { type: "boolean" },
    concurrent: { type: "string" },
    queued: { type: "string" },
    cost: { type: "string" }
  }
})
const name = positionals[0] ?? ""
const kind = kinds.get(name)

const report = ({ figures, violations }: Outcome): void => {
  for (const [figure, value] of Object.entries(figures)) console.log(`  ${figure}: ${value}`)
  for (const violation of violations.slice(0, shown)) console.log(`  BROKEN ${violation}`)
  console.log(`chaos ${name}: ${violations.length} violations`)
  process.exitCode = violations.length === 0 ? 0 : 1
}

if (kind === undefined) {
  console.error(
    `Usage: npm run chaos -- KIND [--seed N] [--count N | --minutes N]   kinds: ${[...kinds.keys()].join(", ")}`
  )
  process.exitCode = 2
} else {
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
  const count = Number(values.minutes ?? values.count ?? kind.count)
  const stored = values.store === undefined ? {} : { store: values.store }
  const narrowed = values.only === undefined ? {} : { only: values.only }
  const timed = values.seconds === undefined ? {} : { seconds: Number(values.seconds) }
  const numbers = Object.fromEntries(
    (["workers", "due", "rate", "concurrent", "cost"] as const).flatMap((option) =>
      values[option] === undefined ? [] : [[option, Number(values[option])]]
    )
  )
  const crashed = values.crash === undefined ? {} : { crash: values.crash }
  const queued = values.queued === undefined ? {} : { queued: values.queued.split(",").map(Number) }
  console.log(`chaos ${name}: seed ${seed}, ${count} ${kind.unit ?? "times"}, node ${process.version}`)
  report(
    await Effect.runPromise(
      kind.run({
        seed,
        count,
        ...stored,
        ...narrowed,
        ...timed,
        ...numbers,
        ...queued,
        ...crashed,
        say: (line) => console.log(`  ${line}`)
      })
    )
  )
}
