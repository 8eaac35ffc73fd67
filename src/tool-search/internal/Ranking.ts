/**
 * Ranks tools by the words of a query.
 */
import type { ToolDefinition } from "../../Provider.ts"

interface Indexed {
  readonly definition: ToolDefinition
  readonly name: ReadonlySet<string>
  readonly description: ReadonlySet<string>
}

/** The words of some tools. */
export interface Index {
  readonly tools: ReadonlyArray<Indexed>
  /** The number of tools that have a word. */
  readonly frequency: ReadonlyMap<string, number>
}

export const index = (definitions: ReadonlyArray<ToolDefinition>): Index => {
  const frequency = new Map<string, number>()
  const tools = definitions.map((definition): Indexed => {
    const name = new Set(wordsOf(definition.name))
    const description = new Set(wordsOf(definition.description))
    for (const word of new Set([...name, ...description])) frequency.set(word, (frequency.get(word) ?? 0) + 1)
    return { definition, name, description }
  })
  return { tools, frequency }
}

/** Returns the tools that have words of a query, the best first, and tools that match alike in their order. */
export const search = (
  { frequency, tools }: Index,
  query: string,
  limit: number
): ReadonlyArray<ToolDefinition> => {
  const words = [...new Set(wordsOf(query))]
  const exact = query.trim().toLowerCase()
  return tools
    .map((tool) => ({
      definition: tool.definition,
      score:
        tool.definition.name.toLowerCase() === exact
          ? Infinity
          : words.reduce(
              (sum, word) => sum + matchOf(tool, word) * weightOf(word, tools.length, frequency),
              0
            )
    }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => (a.score === b.score ? 0 : b.score - a.score))
    .slice(0, limit)
    .map(({ definition }) => definition)
}

/** A word of a name counts three times as much as one of a description, and the start of a word half as much as all of it. */
const matchOf = ({ description, name }: Indexed, word: string): number => {
  if (name.has(word)) return 3
  const isStart = (other: string) => word.length >= 3 && other.startsWith(word)
  if ([...name].some(isStart)) return 1.5
  if (description.has(word)) return 1
  return [...description].some(isStart) ? 0.5 : 0
}

/** A word that few tools have counts more. */
const weightOf = (word: string, count: number, frequency: ReadonlyMap<string, number>): number =>
  Math.log(1 + count / (frequency.get(word) ?? 1))

/** The words of a text in lower case, of names in camel case and snake case too, without the plural. */
const wordsOf = (text: string): ReadonlyArray<string> =>
  Array.from(
    text
      .replaceAll(/([\p{Ll}\d])(\p{Lu})/gu, "$1 $2")
      .toLowerCase()
      .matchAll(/[\p{L}\d]+/gu),
    ([word]) => (word.length > 3 && /[^s]s$/.test(word) ? word.slice(0, -1) : word)
  ).filter((word) => !stopWords.has(word))

const stopWords: ReadonlySet<string> = new Set("a an and for from in of on or the to with tool".split(" "))
