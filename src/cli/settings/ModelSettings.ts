/** The settings of the model and of its instructions. */
import * as Option from "effect/Option"
import * as RunOptions from "../../RunOptions.ts"
import * as Setting from "./Setting.ts"
import * as Values from "./Values.ts"

export const settings = {
  model: Setting.text({
    name: "model",
    alias: "m",
    metavar: "PROVIDER/ID[:EFFORT]",
    description: "The model, such as openai/gpt-5.5 or ollama/qwen3",
    read: Values.model,
    expected: "provider/id"
  }),
  fallbackModel: Setting.list({
    name: "fallback-model",
    metavar: "LIST",
    description: "Models to ask in this order when the model fails, separated by commas",
    read: (texts) => Option.all(texts.flatMap(Values.items).map(Values.model)),
    expected: "models as provider/id, separated by commas"
  }),
  baseUrl: Setting.text({
    name: "base-url",
    metavar: "URL",
    description: "Address of the API, instead of that of the provider",
    read: Values.address,
    expected: "an address such as http://127.0.0.1:8000/v1",
    // The key of the user goes to this address.
    rules: { widens: () => true }
  }),
  effort: Setting.choice({
    name: "effort",
    metavar: "LEVEL",
    description: "Effort of reasoning. Default: that of the model",
    words: RunOptions.ThinkingLevel.literals
  }),
  maxTokens: Setting.number({
    name: "max-tokens",
    metavar: "N",
    description: "Maximum tokens of one answer. Default: that of the provider",
    isFine: Values.isCount,
    expected: "a number above 0",
    rules: { widens: (value, otherwise) => Option.exists(otherwise, (own) => value > own) }
  }),
  temperature: Setting.number({
    name: "temperature",
    metavar: "N",
    description: "Randomness of the answer, from 0 to 2. Default: that of the model",
    isFine: (value) => value >= 0 && value <= 2,
    expected: "a number from 0 to 2"
  }),
  system: Setting.text({
    name: "system",
    metavar: "TEXT",
    description: "System prompt, instead of the default one",
    read: Option.some,
    expected: "a text"
  }),
  appendSystem: Setting.text({
    name: "append-system",
    metavar: "TEXT",
    description: "Text behind the system prompt",
    read: Option.some,
    expected: "a text"
  })
}
