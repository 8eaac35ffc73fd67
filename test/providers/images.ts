/** Images of few bytes, in base64. */

const chunk = (type: string, data: ReadonlyArray<number>): ReadonlyArray<number> => [
  ...[24, 16, 8, 0].map((bits) => (data.length >>> bits) & 0xff),
  ...Buffer.from(type, "latin1"),
  ...data,
  // Nothing here reads the checksum.
  0,
  0,
  0,
  0
]

/** A PNG that says of itself that it has this size. */
export const png = (width: number, height: number): string => {
  const number = (value: number) => [24, 16, 8, 0].map((bits) => (value >>> bits) & 0xff)
  const header = [...number(width), ...number(height), 8, 2, 0, 0, 0]
  const bytes = [...chunk("IHDR", header), ...chunk("IDAT", [1, 2, 3]), ...chunk("IEND", [])]
  return Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...bytes]).toString("base64")
}

/** Images of 7 by 5 pixels, as encoders write them. */
export const written: Readonly<Record<string, string>> = {
  png: "iVBORw0KGgoAAAANSUhEUgAAAAcAAAAFCAYAAACJmvbYAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAEklEQVQImWM4ISLSgAszDIAkAE/PMlFFWx7eAAAAAElFTkSuQmCC",
  jpeg: "/9j/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYWICwgIyYnKSopGR8tMC0oMCUoKSj/2wBDAQcHBwoIChMKChMoGhYaKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCj/wAARCAAFAAcDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAf/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFQEBAQAAAAAAAAAAAAAAAAAABQb/xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCDADlm/9k=",
  progressiveJpeg:
    "/9j/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYWICwgIyYnKSopGR8tMC0oMCUoKSj/2wBDAQcHBwoIChMKChMoGhYaKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCj/wgARCAAFAAcDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAb/xAAVAQEBAAAAAAAAAAAAAAAAAAAEBf/aAAwDAQACEAMQAAABggaz/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABBQJ//8QAFBEBAAAAAAAAAAAAAAAAAAAAAP/aAAgBAwEBPwF//8QAFBEBAAAAAAAAAAAAAAAAAAAAAP/aAAgBAgEBPwF//8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQAGPwJ//8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPyF//9oADAMBAAIAAwAAABD/AP/EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQMBAT8Qf//EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQIBAT8Qf//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAT8Qf//Z",
  gif: "R0lGODlhBwAFAIAAAExpccgUFCH5BAUAAAAALAAAAAAHAAUAAAIFjI+puwUAOw==",
  webp: "UklGRjYAAABXRUJQVlA4ICoAAACQAQCdASoHAAUAAUAmJaACdLoAA5gA/vp5X68p8Tbf/OJfyR+gXMYAAAA=",
  extendedWebp:
    "UklGRl4AAABXRUJQVlA4WAoAAAAQAAAABgAABAAAQUxQSAoAAAABB1DAiAhERP8DVlA4IC4AAADQAQCdASoHAAUAAUAmJaACdLoB+AADsAD+9Bi3/hV8bkLW//voB70A96Af4IAA",
  losslessWebp: "UklGRh4AAABXRUJQVlA4TBEAAAAvBgABEAdQiiKXooCBiOh/AAA="
}
