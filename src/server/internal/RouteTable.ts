/**
 * The methods of each path, for requests that have no route: Effect's router does not distinguish a path that it does not have from a method
 * that it does not have.
 */
import * as FindMyWay from "effect/http/FindMyWay"
import * as HttpApi from "effect/http-api/HttpApi"
import { Api } from "../../api/Api.ts"
import type { Route } from "../Routes.ts"

/** The way in which paths are matched: as they are written. */
export const config = {
  maxParamLength: 2400,
  caseSensitive: true,
  ignoreDuplicateSlashes: false,
  ignoreTrailingSlash: false
}

const methods = ["GET", "POST", "PATCH", "DELETE", "HEAD"]

/** Makes the table of the API and of other routes. */
export const make = (
  routes: ReadonlyArray<Pick<Route, "method" | "path">>
): ((url: string) => ReadonlyArray<string>) => {
  const router = FindMyWay.make<undefined>(config)
  const add = (method: string, path: Route["path"]) =>
    router.on(method === "GET" ? ["GET", "HEAD"] : method, path, undefined)
  for (const { method, path } of routes) add(method, path)
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint: { method, path } }) => add(method, `/${path.slice(1)}`)
  })
  return (url) => methods.filter((method) => router.find(method, url) !== undefined)
}
