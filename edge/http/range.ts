/** A byte range of some content. */
export interface ByteRange {
  readonly from: number
  readonly length: number
}

/**
 * Parses a `Range` header (RFC 9110, section 14). Returns null for a header to ignore, as the RFC permits for several
 * ranges or another unit. Returns `unsatisfiable` for a range that needs a 416.
 */
export function parseRange(header: string, size: number): ByteRange | null | 'unsatisfiable' {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header.trim())
  if (match === null || (match[1] === '' && match[2] === '')) return null
  if (match[1] === '') {
    const suffix = Math.min(Number(match[2]), size)
    return suffix === 0 ? 'unsatisfiable' : { from: size - suffix, length: suffix }
  }
  const from = Number(match[1])
  const last = match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1)
  if (match[2] !== '' && Number(match[2]) < from) return null
  return from >= size ? 'unsatisfiable' : { from, length: last - from + 1 }
}

/** True if `If-None-Match` lists the entity tag (weak comparison, RFC 9110, section 13.1.2). */
export function matchesEtag(header: string, etag: string): boolean {
  if (header.trim() === '*') return true
  return header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
}
