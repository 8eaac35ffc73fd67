/**
 * Names of tools: which ones providers accept, and which tool a call means.
 */

/** Whether every provider accepts the name. */
export const isAccepted = (name: string): boolean => /^[a-zA-Z0-9_-]{1,64}$/.test(name)

/** The name with every character that providers refuse replaced by `_`, cut to 64 characters. */
export const accepted = (name: string): string => name.replace(/[^\w-]/g, "_").slice(0, 64) || "_"

/**
 * Finds a tool by its name, else by the name without the white space around it, which some models add. On request also the only
 * tool whose name differs in upper and lower case.
 */
export const find = <Tool>(
  tools: ReadonlyMap<string, Tool>,
  name: string,
  caseInsensitive = false
): Tool | undefined => {
  const found = tools.get(name) ?? tools.get(name.trim())
  if (found !== undefined || !caseInsensitive) return found
  const wanted = name.trim().toLowerCase()
  const alike = [...tools].filter(([other]) => other.toLowerCase() === wanted)
  return alike.length === 1 ? alike[0]?.[1] : undefined
}
