import { fail } from '../../sql/errors.ts'
import type { Metadata } from '../../sql/rag/documents.ts'
import { MAX_METADATA_BYTES } from './metadata.ts'
import { createMatcher } from './walk.ts'

/**
 * Pairs of a pattern and its metadata. A pattern is a relative path, or in .gitignore syntax. Jobs are jsonb, which
 * sorts keys, but their order matters.
 */
export type FileMetadata = readonly (readonly [pattern: string, metadata: Metadata])[]

// A matcher keeps the result of each path forever, in 84 bytes.
const MAX_KEPT_RESULTS = 100_000

/**
 * Returns a function that merges the metadata of a file. Those of patterns that match its relative path override those of
 * all files, in order. It throws fail('rag.metadata_too_large').
 *
 * @throws fail('rag.metadata_pattern').
 */
export function createMetadataMerger(
  ofAll: Metadata,
  byPattern: FileMetadata,
): (relativePath: string) => Metadata {
  const createMatchers = () =>
    byPattern.map(([pattern, metadata]) => ({
      pattern,
      metadata,
      matcher: createMatcher([pattern], 'rag.metadata_pattern', { ignorecase: false }),
    }))
  let [patterns, keptResults] = [createMatchers(), 0]
  return (relativePath) => {
    if (keptResults > MAX_KEPT_RESULTS) [patterns, keptResults] = [createMatchers(), 0]
    keptResults += patterns.length
    const matching = patterns.filter(
      ({ pattern, matcher }) => pattern === relativePath || matcher.ignores(relativePath),
    )
    if (matching.length === 0) return ofAll
    const merged = Object.assign({}, ofAll, ...matching.map(({ metadata }) => metadata)) as Metadata
    if (Buffer.byteLength(JSON.stringify(merged)) > MAX_METADATA_BYTES)
      throw fail('rag.metadata_too_large', { file: relativePath, max: MAX_METADATA_BYTES })
    return merged
  }
}
