/** The source of a module for each subpath, which exports everything that the subpath does, each by its inferred type. */
export declare const sourcesOf: (
  folder: string,
  subpaths: ReadonlyArray<string>
) => ReadonlyArray<readonly [subpath: string, source: string]>
