/**
 * Options as somebody gave them: a member that is `undefined` is one that is not there, and keeps its default.
 */
export const given = <Options extends object>(options: Options): Options => {
  const kept = { ...options }
  for (const name in kept) if (kept[name] === undefined) Reflect.deleteProperty(kept, name)
  return kept
}
