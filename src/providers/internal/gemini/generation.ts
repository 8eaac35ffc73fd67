/**
 * The generation of a Gemini model, derived from its id. Conversations and results have another form before
 * Gemini 3.
 */

/**
 * The generation of a model: 2.5 for `gemini-2.5-flash`, 0 for other models. A Gemini without a number, such as
 * `gemini-flash-latest`, counts as the newest.
 */
export const generation = (model: string): number => {
  const name = nameOf(model)
  const version = /\d+(?:\.\d+)?/.exec(name)?.[0]
  return name === "" ? 0 : version === undefined ? Infinity : Number(version)
}

/** `2.5-flash` of `models/gemini-2.5-flash`. */
const nameOf = (model: string): string => /gemini-(.*)/.exec(model)?.[1] ?? ""
