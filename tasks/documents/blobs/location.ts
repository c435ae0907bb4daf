/** Where bytes are stored, as in `BLOB_STORE` and the rows of blobs. */
export type Location =
  | { readonly kind: 'postgres' }
  | { readonly kind: 'files'; readonly folder: string }
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string }

// The names that S3 allows, and prefixes of its safe characters.
const S3 = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[A-Za-z0-9!_.*'()-]+)*)\/?$/

/** Parses a location; null when it is invalid. */
export function parseLocation(text: string): Location | null {
  if (text === 'postgres') return { kind: 'postgres' }
  const folder = /^file:(.+)$/s.exec(text)?.[1]
  // A URL with a host does not say which folder is meant.
  if (folder !== undefined) return /^\/\/[^/]|\0/.test(folder) ? null : { kind: 'files', folder }
  const match = S3.exec(text)
  if (match === null) return null
  const [, bucket, path] = match as unknown as [string, string, string]
  const steps = path.split('/').slice(1)
  if (steps.some((step) => step === '.' || step === '..')) return null
  return { kind: 's3', bucket, prefix: steps.map((step) => `${step}/`).join('') }
}
