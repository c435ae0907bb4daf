import { parse } from 'smol-toml'

/** Parses TOML; dates become strings as written. @throws Error if it is invalid. */
export function parseToml(text: string): unknown {
  return JSON.parse(
    JSON.stringify(parse(text, { integersAsBigInt: 'asNeeded' }), (_, value) =>
      typeof value === 'bigint' ? String(value) : value,
    ),
  )
}
