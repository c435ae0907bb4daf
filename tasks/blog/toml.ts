import { parse } from 'smol-toml'

/** The value of a TOML text; dates stay text as written. @throws Error when it is not TOML. */
export function parseToml(text: string): unknown {
  return JSON.parse(
    JSON.stringify(parse(text, { integersAsBigInt: 'asNeeded' }), (_, value) =>
      typeof value === 'bigint' ? String(value) : value,
    ),
  )
}
