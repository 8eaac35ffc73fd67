/**
 * The names of the tools of MCP servers.
 */
import * as Hash from "effect/Hash"

/** Most characters of the name of a tool. */
const max = 64

/** A name of a server that ends where the next `__` begins. */
const isPlain = (server: string): boolean => /^[a-zA-Z0-9-]+(?:_[a-zA-Z0-9-]+)*$/.test(server)

/** `mcp__<server>__<tool>`; with a hash at its end if it would be too long, or could also be that of another tool. */
export const of = (server: string, tool: string): string => {
  const name = `mcp__${server}__${tool}`
  if (name.length <= max && isPlain(server) && /^[a-zA-Z0-9-][\w-]*$/.test(tool)) return name
  const hash = (Hash.string(JSON.stringify([server, tool])) >>> 0).toString(16).padStart(8, "0")
  return `${name.replace(/[^\w-]/g, "_").slice(0, max - 9)}_${hash}`
}
