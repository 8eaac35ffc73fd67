/**
 * The addresses that people configure: with or without slashes at the end, some with a query.
 */

/** The address up to its query, without slashes at its end; and the query with its question mark, if there is one. */
export const parts = (baseUrl: string): readonly [base: string, query: string] => {
  const [, base = "", query = ""] = /^([^?#]*)(.*)$/s.exec(baseUrl) ?? []
  return [base.replace(/\/+$/, ""), query]
}

/** The address without a route at its end: some people copy the whole address from the page of a vendor. */
export const without = (route: string, base: string): string =>
  base.endsWith(route) ? base.slice(0, -route.length).replace(/\/+$/, "") : base
