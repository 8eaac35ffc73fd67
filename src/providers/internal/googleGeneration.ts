/**
 * The generation of a Gemini model, read off its id: conversations and results are written differently before Gemini 3.
 */

/**
 * The generation of a model: 2.5 of "gemini-2.5-flash", 0 of what is no Gemini. A Gemini without a number, such as
 * "gemini-flash-latest", is the newest.
 */
export const generation = (model: string): number => {
  const name = nameOf(model)
  const version = /\d+(?:\.\d+)?/.exec(name)?.[0]
  return name === "" ? 0 : version === undefined ? Infinity : Number(version)
}

/** "2.5-flash" of "models/gemini-2.5-flash". */
const nameOf = (model: string): string => /gemini-(.*)/.exec(model)?.[1] ?? ""
