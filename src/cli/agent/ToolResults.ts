/** The cut of large tool results, and the search for tools, if there are many. */
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as ArtifactStore from "../../artifacts/ArtifactStore.ts"
import * as LargeResults from "../../artifacts/LargeResults.ts"
import * as ReadArtifact from "../../artifacts/ReadArtifact.ts"
import * as ToolSearch from "../../tool-search/ToolSearch.ts"
import type { Settings } from "../settings/Settings.ts"

/** The tool that reads the rest of a result. A page of it is no larger than a result may be. */
export const reader = ({ maxResult }: Settings) =>
  ReadArtifact.make(Option.match(maxResult, { onNone: () => ({}), onSome: pageOf }))

const pageOf = (maxCharacters: number) => ({ maxCharacters: Math.min(maxCharacters, 20_000) })

/** `kept` has the whole results of the session. Those of a run without a session stay in memory. */
export const layer = (
  { maxResult, toolSearch }: Settings,
  kept: ArtifactStore.ArtifactStore["Service"] | undefined
) => {
  const store =
    kept === undefined ? ArtifactStore.layerMemory() : Layer.succeed(ArtifactStore.ArtifactStore, kept)
  const cut = LargeResults.layer(
    Option.match(maxResult, { onNone: () => ({}), onSome: (maxCharacters) => ({ maxCharacters }) })
  )
  const search = ToolSearch.layer(
    Option.match(toolSearch, { onNone: () => ({}), onSome: (threshold) => ({ threshold }) })
  )
  return Layer.merge(Layer.provideMerge(cut, store), search)
}
