/**
 * The routes of a server by path: which methods a path has, and which body they read.
 */
import * as HttpApi from "effect/http-api/HttpApi"
import { Api } from "../api/Api.ts"
import type { Body, Route } from "./Routes.ts"

type Line = Pick<Route, "path" | "body"> & { readonly method: string }

/** The path of the OpenAPI document. */
export const openApiPath = "/openapi.json"
/** The path of the page that names the document. */
export const rootPath = "/"
/** The paths that need no token. */
const publicPaths: ReadonlySet<string> = new Set([rootPath, "/health"])
export const isPublic = (path: string): boolean => publicPaths.has(path)

const withoutBody: ReadonlySet<string> = new Set(["pause", "resume", "cancel"])

const bodyOf = (method: string, identifier: string): Body =>
  method !== "POST" && method !== "PATCH" ? "none" : withoutBody.has(identifier) ? "optional" : "json"

const ofApi = (): ReadonlyArray<Line> => {
  const lines: Array<Line> = [
    { method: "GET", path: openApiPath, body: "none" },
    { method: "GET", path: rootPath, body: "none" }
  ]
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint: { identifier, method, path } }) => {
      lines.push({ method, path: `/${path.slice(1)}`, body: bodyOf(method, identifier) })
    }
  })
  return lines
}

/** The methods of a path, each with the body that it reads. */
export type Methods = ReadonlyMap<string, Body>

/** Makes the table of the API and of other routes. */
export const make = (routes: ReadonlyArray<Route>): ((path: string) => Methods) => {
  const lines = [...ofApi(), ...routes].map(({ body, method, path }) => ({
    body,
    method,
    segments: path.split("/")
  }))
  return (path) => {
    const segments = path.split("/")
    const methods = new Map<string, Body>()
    for (const line of lines) if (matches(line.segments, segments)) methods.set(line.method, line.body)
    if (methods.has("GET")) methods.set("HEAD", "none")
    return methods
  }
}

const matches = (pattern: ReadonlyArray<string>, path: ReadonlyArray<string>): boolean =>
  pattern.length === path.length &&
  pattern.every((segment, index) =>
    segment.startsWith(":") ? (path[index] ?? "") !== "" : segment === path[index]
  )
