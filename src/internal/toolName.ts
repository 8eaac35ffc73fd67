/**
 * Names of tools: which ones providers accept, and which tool a call means.
 */

/** Whether every provider accepts the name. */
export const isAccepted = (name: string): boolean => /^[a-zA-Z0-9_-]{1,64}$/.test(name)

/** The name with every character that providers refuse replaced by `_`, cut to 64 characters. */
export const accepted = (name: string): string => name.replace(/[^\w-]/g, "_").slice(0, 64) || "_"

/** The name without what some models write around it: white space, the namespace of their prompt, and tokens of their format. */
export const bare = (name: string): string =>
  name.trim().replace(/^(?:functions|default_api)[.:]|(?:<\|.*|:\d+)$/gs, "")

/**
 * Finds a tool by its name, else by the name without what some models write around it. On request also the only tool whose name
 * differs in upper and lower case.
 */
export const find = <Tool>(tools: ReadonlyMap<string, Tool>, name: string, caseInsensitive = false) => {
  const found = tools.get(name) ?? tools.get(name.trim()) ?? tools.get(bare(name))
  if (found !== undefined || !caseInsensitive) return found
  const wanted = bare(name).toLowerCase()
  const alike = [...tools].filter(([other]) => other.toLowerCase() === wanted)
  return alike.length === 1 ? alike[0]?.[1] : undefined
}
