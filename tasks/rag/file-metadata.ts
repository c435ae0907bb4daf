import { fail } from '../../sql/errors.ts'
import type { Metadata } from '../../sql/rag/documents.ts'
import { MAX_METADATA_BYTES } from './metadata.ts'
import { createMatcher } from './walk.ts'

/**
 * Pairs of a pattern and its metadata. A pattern is a relative path, or in .gitignore syntax. Jobs are jsonb, which
 * sorts keys, but their order matters.
 */
export type FileMetadata = readonly (readonly [pattern: string, metadata: Metadata])[]

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
  const patterns = byPattern.map(([pattern, metadata]) => ({
    pattern,
    metadata,
    matcher: createMatcher([pattern], 'rag.metadata_pattern', { ignorecase: false }),
  }))
  return (relativePath) => {
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
