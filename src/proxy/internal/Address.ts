/**
 * The address of a route of a server.
 */
import type { Server } from "../../Provider.ts"

/** The route below an address, which may name the route itself. */
export const of = (url: string, route: string): string => {
  const bare = url.replace(/\/+$/, "")
  return bare.endsWith(route) ? bare : `${bare}${route}`
}

/** The server of a URL. Absent for text that is not a URL, which fails each call. */
export const serverOf = (url: string): { readonly server?: Server } => {
  if (!URL.canParse(url)) return {}
  const { hostname, port, protocol } = new URL(url)
  return { server: { address: hostname, port: Number(port || (protocol === "http:" ? 80 : 443)) } }
}
