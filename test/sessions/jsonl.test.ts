import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem } from "effect"
import { JsonlSessionStore } from "effect-agent/sessions"
import { contract } from "./contract.ts"

const folder = Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped())

contract({
  name: "files in one folder",
  storage: Effect.flatMap(folder, (directory) => JsonlSessionStore.storage({ directory })).pipe(
    Effect.provide(NodeServices.layer)
  )
})

contract({
  name: "files in folders by working directory",
  storage: Effect.flatMap(folder, (root) => JsonlSessionStore.storage({ root, fsync: "always" })).pipe(
    Effect.provide(NodeServices.layer)
  )
})
