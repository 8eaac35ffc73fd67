/**
 * Secrets of twenty kinds and a server that gives them back, in every language, by every way a provider comes by its key,
 * in every shape of an answer, over every client. None of them leaves the process but to the server.
 */
import { NodeHttpClient } from "@effect/platform-node"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { NodeHttp } from "effect-agent/node"
import { type Case, drive, leaks } from "../../test/faults/secrets/drive.ts"
import { languages, secrets as planted, ways } from "../../test/faults/secrets/planted.ts"
import { shapes } from "../../test/faults/secrets/shapes.ts"
import type { Chaos, Options } from "./Chaos.ts"

/** `count` is of rounds: in each, every case comes once. */
export const secrets: Chaos = { count: 1, run: (options) => Effect.orDie(run(options)) }

const clients = {
  fetch: FetchHttpClient.layer,
  undici: NodeHttpClient.layerUndici,
  NodeHttp: NodeHttp.layer,
  "node:http": NodeHttpClient.layerNodeHttp
}

const cases: ReadonlyArray<Case> = languages.flatMap((language) =>
  ways.flatMap((way) => shapes.map((shape) => ({ language, way, shape })))
)

const run = Effect.fnUntraced(function* ({ count, say }: Options) {
  const violations: Array<string> = []
  let runs = 0
  for (let round = 1; round <= count; round++) {
    for (const [client, http] of Object.entries(clients)) {
      for (const each of cases) {
        const found = leaks(yield* drive(each, http))
        runs++
        const where = `${each.language}, ${each.way}, ${client}, ${each.shape.name}`
        violations.push(...found.map((leak) => `${where}: ${leak}`))
      }
      say(`round ${round}, ${client}: ${cases.length} runs, ${violations.length} hits`)
    }
  }
  return {
    figures: { secrets: planted.length, answers: shapes.length, runs, hits: violations.length },
    violations
  }
})
