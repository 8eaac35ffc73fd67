/**
 * The addresses that people configure: with or without slashes at the end, some with a query.
 */

/** The address up to its query, without slashes at its end; and the query with its question mark, if there is one. */
export const parts = (baseUrl: string): readonly [base: string, query: string] => {
  const [, base = "", query = ""] = /^([^?#]*)(.*)$/s.exec(baseUrl) ?? []
  return [base.replace(/\/+$/, ""), query]
}
