/** Normalizes configured addresses, which may end in slashes and contain a query. */

/** The address without its query and without slashes at its end, and the query including its question mark. */
export const parts = (baseUrl: string): readonly [base: string, query: string] => {
  const [, base = "", query = ""] = /^([^?#]*)(.*)$/s.exec(baseUrl) ?? []
  return [base.replace(/\/+$/, ""), query]
}

/** The address without a route at its end, which users copy from the documentation of a vendor. */
export const without = (route: string, base: string): string =>
  base.endsWith(route) ? base.slice(0, -route.length).replace(/\/+$/, "") : base
