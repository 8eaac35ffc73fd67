/** A process that changes the files of a folder with the tools until it is killed. Writes a character for each step. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect, FileSystem } from "effect"
import { join } from "node:path"
import * as FileKeeper from "../../../src/cli/files/FileKeeper.ts"
import * as KeptStore from "../../../src/cli/files/KeptStore.ts"
import * as Files from "../../../src/tools/Files.ts"
import { Keeping } from "../../../src/tools/Keeping.ts"
import { Random } from "../Random.ts"
import * as Contents from "./Contents.ts"

const [root = "", kept = "", seed = "0"] = process.argv.slice(2)

const play = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const store = yield* KeptStore.inFolder(kept)
  const keeper = yield* FileKeeper.open(store)
  const random = new Random(Number(seed))
  while (true) {
    process.stdout.write(".")
    const name = random.pick("a", "b", "c", "d")
    const bytes = new TextEncoder().encode(Contents.lines(random.pick("1", "2", "3", "4", "5")))
    const kind = random.pick("write", "write", "write", "command", "back", "forth")
    if (kind === "back" || kind === "forth")
      yield* keeper.restore(yield* keeper.plan(kind, 1 + random.upTo(2)))
    else if (kind === "write")
      yield* Effect.provideService(
        Files.update({ root }, name, () => Effect.succeed({ bytes })),
        Keeping,
        keeper
      )
    else {
      // A command writes as it likes: this one in one step.
      const whole = join(kept, "..", `whole-${process.pid}`)
      yield* files.writeFile(whole, bytes)
      const path = join(root, name)
      yield* keeper.command(
        root,
        random.once(2) ? files.remove(path, { force: true }) : files.rename(whole, path)
      )
    }
  }
})

NodeRuntime.runMain(Effect.provide(play, NodeServices.layer))
