/**
 * Large tool results: the start and the end for the model, the whole text in a store, and a tool to read it.
 *
 * **Example** (Reading the middle of a large result)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent, Message, Tool } from "effect-agent"
 * import { ArtifactStore, LargeResults, ReadArtifact } from "effect-agent/artifacts"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const lines = Array.from({ length: 2_000 }, (_, index) => `${index + 1} sheep`).join("\n")
 * const count = Tool.make({ name: "count", description: "Counts sheep.", execute: () => Effect.succeed(lines) })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [count, ReadArtifact.make()] })
 *   let id = ""
 *   yield* agent.subscribe((event) =>
 *     Effect.sync(() => {
 *       if (event._tag === "ArtifactStored") id = event.artifactId
 *     })
 *   )
 *   const { newMessages } = yield* agent.prompt("Count sheep.")
 *   console.log(newMessages.map(Message.textOf)[2]?.split("\n").slice(-2))
 *   const store = yield* ArtifactStore.ArtifactStore
 *   console.log((yield* store.get(id)).text.split("\n").length)
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("count", {}), ScriptedProvider.text("I fall asleep.")]
 * const large = LargeResults.layer({ maxCharacters: 1_000 }).pipe(Layer.provideMerge(ArtifactStore.layerMemory()))
 * await Effect.runPromise(program.pipe(Effect.provide([large, ScriptedProvider.layer(script)])))
 * // => [ '1999 sheep', '2000 sheep' ]
 * // => 2000
 * ```
 *
 * @since 0.2.0
 */
export * as ArtifactStore from "./ArtifactStore.ts"
export * as FileArtifactStore from "./FileArtifactStore.ts"
export * as LargeResults from "./LargeResults.ts"
export * as ReadArtifact from "./ReadArtifact.ts"
export * as SqlArtifactStore from "./SqlArtifactStore.ts"
