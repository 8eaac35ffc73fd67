/** Removes members whose value is `undefined`, so that they keep their defaults. */
export const given = <Options extends object>(options: Options): Options => {
  const kept = { ...options }
  for (const name in kept) if (kept[name] === undefined) Reflect.deleteProperty(kept, name)
  return kept
}
