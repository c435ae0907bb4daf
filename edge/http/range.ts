/** A part of some content, by byte position. */
export interface ByteRange {
  readonly from: number
  readonly length: number
}

/**
 * Parses a `Range` header (RFC 9110, section 14). Only a single byte range is served; several ranges or another unit
 * are ignored, which the RFC permits. `unsatisfiable` means 416.
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

/** Whether an `If-None-Match` names the entity tag (RFC 9110, section 13.1.2: weak comparison). */
export function matchesEtag(header: string, etag: string): boolean {
  if (header.trim() === '*') return true
  return header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
}
