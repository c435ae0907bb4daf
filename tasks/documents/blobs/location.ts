/** A parsed location of stored bytes, as in `BLOB_STORE` and in the rows of blobs. */
export type StoreLocation =
  | { readonly kind: 'postgres' }
  | { readonly kind: 'files'; readonly folder: string }
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string }

// Matches S3 bucket names, and prefixes of characters that are safe in S3.
const S3_URL_PATTERN = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[A-Za-z0-9!_.*'()-]+)*)\/?$/

/** Parses a location; null if it is invalid. */
export function parseLocation(text: string): StoreLocation | null {
  if (text === 'postgres') return { kind: 'postgres' }
  const folder = /^file:(.+)$/s.exec(text)?.[1]
  // Rejects a URL with a host, which does not name a local folder.
  if (folder !== undefined) return /^\/\/[^/]|\0/.test(folder) ? null : { kind: 'files', folder }
  const match = S3_URL_PATTERN.exec(text)
  if (match === null) return null
  const [, bucket, path] = match as unknown as [string, string, string]
  const segments = path.split('/').slice(1)
  if (segments.some((segment) => segment === '.' || segment === '..')) return null
  return { kind: 's3', bucket, prefix: segments.map((segment) => `${segment}/`).join('') }
}
