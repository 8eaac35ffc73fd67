/** The compaction of conversations that near the end of the context window of their model. */
import * as Compaction from "../../context/Compaction.ts"
import * as ModelTable from "./ModelTable.ts"

/** `model` is `provider/id`. */
const windowOf = (model: string): number | undefined => {
  const slash = model.indexOf("/")
  return ModelTable.ruleOf(model.slice(0, slash), model.slice(slash + 1))?.contextWindow
}

export const layer = Compaction.layer({ contextWindow: windowOf })
