/**
 * Processes that change files, run commands, take changes back and make them again, and are killed at a random moment. At the next start no
 * file that a tool or a restore writes is half written, and all changes can be taken back: the files are as they were at the beginning.
 */
import { NodeServices } from "@effect/platform-node"
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as FileKeeper from "../../src/cli/files/FileKeeper.ts"
import * as KeptStore from "../../src/cli/files/KeptStore.ts"
import * as Bundled from "./Bundled.ts"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import * as Contents from "./files/Contents.ts"
import { Random } from "./Random.ts"

export const files: Chaos = { count: 100, unit: "kills", run: (options) => Effect.scoped(run(options)) }

/** Kills of one folder: each process goes on where the one before it was killed. */
const killsOfFolder = 5

const run = Effect.fnUntraced(function* ({
  count,
  say,
  seed
}: Options): Effect.fn.Return<Outcome, never, Scope.Scope> {
  const home = yield* Bundled.folder("files")
  const player = yield* Bundled.make("files/player.ts", home)
  const random = new Random(seed)
  const violations: Array<string> = []
  let kills = 0
  let steps = 0
  for (let folder = 0; kills < count; folder++) {
    const root = join(home, `work-${folder}`)
    const kept = join(home, `kept-${folder}`)
    mkdirSync(root)
    for (const name of ["a", "b"]) writeFileSync(join(root, name), Contents.lines(name))
    const begun = Contents.ofFolder(root)
    for (let kill = 0; kill < killsOfFolder && kills < count; kill++) {
      const of = `seed ${seed}, kill ${++kills}`
      steps += yield* killed([player, root, kept, String(seed + kills)], random.upTo(400))
      const broken = yield* judge(root, kept, begun, random.once(2)).pipe(
        Effect.catchCause((cause) => Effect.succeed([String(cause)]))
      )
      violations.push(...broken.map((what) => `${of}: ${what}`))
      if (kills % 20 === 0) say(`${kills} kills`)
    }
    rmSync(root, { recursive: true })
    rmSync(kept, { recursive: true, force: true })
  }
  return { figures: { kills, steps }, violations }
})

/** Lets a process work for some milliseconds after its first step, and kills it. Succeeds with the number of its steps. */
const killed = (args: ReadonlyArray<string>, after: number) =>
  Effect.promise(async () => {
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
    let steps = 0
    const closed = once(child, "close")
    child.stdout.on("data", (bytes: Uint8Array) => (steps += bytes.length))
    await Promise.race([once(child.stdout, "data"), closed])
    await Promise.race([new Promise((resolve) => setTimeout(resolve, after)), closed])
    child.kill("SIGKILL")
    await closed
    return steps
  })

/** Starts again, and finds broken promises. With `isBack` it takes all changes back. */
const judge = Effect.fnUntraced(function* (
  root: string,
  kept: string,
  begun: Contents.Contents,
  isBack: boolean
) {
  const store = yield* KeptStore.inFolder(kept)
  const keeper = yield* FileKeeper.open(store)
  const broken = [...Contents.halfWritten(root)]
  if (!isBack) return broken
  const plan = yield* keeper.plan("back", Infinity)
  if (plan.conflicts.length > 0) broken.push(`conflicts: ${plan.conflicts.join(", ")}`)
  yield* keeper.restore(plan)
  if (!Contents.isSame(Contents.ofFolder(root), begun))
    broken.push(`the files are not as before: ${Contents.difference(root, begun)}`)
  return broken
}, Effect.provide(NodeServices.layer))
