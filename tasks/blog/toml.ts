import { parse } from 'smol-toml'

/** Parses TOML. Returns dates and very large integers as strings. @throws Error if the TOML is invalid. */
export function parseToml(text: string): unknown {
  return JSON.parse(
    JSON.stringify(parse(text, { integersAsBigInt: 'asNeeded' }), (_, value) =>
      typeof value === 'bigint' ? String(value) : value,
    ),
  )
}
