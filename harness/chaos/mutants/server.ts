/** The guards of the server and of its logs. */
import type { Mutant } from "./Mutant.ts"

const guards = { file: "src/server/internal/Guards.ts", test: "test/server/Guards.slow.test.ts" }
const order = { ...guards, fault: "let in only what all of them let in" }
const several = {
  fault: "is with the agent, and has the summary, that it had before",
  test: "test/server/HandOffKills.slow.test.ts"
}
const log = { file: "src/runs/internal/RunLog.ts", test: "test/server/RunLog.test.ts" }

export const mutants: ReadonlyArray<Mutant> = [
  {
    ...order,
    without: "the check of the host",
    from: "const isKnown = allowsHost(hosts, host)",
    to: "const isKnown = true"
  },
  {
    ...order,
    without: "the check of the origin",
    from: "const isAllowed = origin === undefined || cors.allows(origin, host)",
    to: "const isAllowed = true"
  },
  {
    ...order,
    file: "src/server/internal/Admission.ts",
    without: "the token",
    from: "yield* this.authorized(credential, request)",
    to: ""
  },
  {
    ...order,
    file: "src/server/internal/Admission.ts",
    without: "the check of the content type",
    from: "if (!isJson || encoding",
    to: "if (encoding"
  },
  {
    ...guards,
    fault: "let no request through with an empty token",
    file: "src/server/internal/Admission.ts",
    without: "the refusal of an empty secret",
    from: "if (secret.length === 0) return false",
    to: "if (secret.length === 0) return given.length === 0"
  },
  {
    ...log,
    fault: "shows nothing that could not be stored",
    without: "the order of storing and showing",
    from: "Effect.andThen(stored, show)",
    to: "Effect.andThen(show, stored)"
  },
  {
    ...log,
    fault: "stores all but deltas, and what shows how far watchers may have seen",
    without: "the line of a place far behind the last one",
    from: "    return [LogLine.reserved(this.last)]\n",
    to: "    return []\n"
  },
  {
    ...several,
    without: "a hand-off that a crash cut is made again",
    file: "src/internal/openAgent.ts",
    from: '    effect: "idempotent",\n',
    to: ""
  },
  {
    ...several,
    without: "the call of an agent that has not begun runs again",
    file: "src/internal/subAgent.ts",
    from: '    effect: "idempotent",\n',
    to: ""
  },
  {
    ...several,
    without: "answers behind a summary measure requests after a restart",
    file: "src/internal/compactions.ts",
    from: "messages.findLast(({ id }) => id === current.madeAfter) ?? ",
    to: ""
  },
  {
    ...several,
    without: "the end of a compaction that only the session has",
    file: "src/runs/internal/Facts.ts",
    from: "if (reason === undefined) return []\n    const spent",
    to: "if (reason !== undefined) return []\n    const spent"
  },
  {
    ...several,
    without: "the end of a compaction that a crash cut",
    file: "src/runs/internal/Continuation.ts",
    from: "    completion.endCompaction(open)\n",
    to: ""
  }
]
