import { z } from 'zod'
import { type Filter, findFilterProblems } from '../../../tasks/rag/filter.ts'
import { DOCUMENT_KEYS, MAX_METADATA_BYTES, RESERVED_KEYS } from '../../../tasks/rag/metadata.ts'

/** Metadata of results: filters on them, and those that a caller adds. */

/** A filter on the metadata of results. It is no record of zod, which would omit the key `__proto__`. */
export const MetadataFilter = z
  .unknown()
  .superRefine((filter, context) => {
    for (const { path, message } of findFilterProblems(filter))
      context.addIssue({ code: 'custom', path: [...path], message })
  })
  .transform((filter) => filter as Filter)
  .meta({
    id: 'RagFilter',
    type: 'object',
    additionalProperties: true,
    description:
      'Conditions by key, all of which must hold. A condition is a value, or an object of operators: `$eq`, `$ne`, `$in`, ' +
      '`$nin`, `$gt`, `$gte`, `$lt`, `$lte`, `$contains`, `$exists`, `$not`. The bounds of a condition apply to the same ' +
      'element of a list. `$and` and `$or` have a list of filters, `$not` has one.',
    examples: [{ tags: { $in: ['lease', 'rent'] }, document_date: { $gte: '2025-01-01' } }],
  })

const MAX_KEYS = 50
const MAX_LIST_VALUES = 100
const MAX_PATTERNS = 1000
const MAX_FILE_METADATA_BYTES = 256 * 1024

const Scalar = z.union([z.string(), z.number(), z.boolean()])
const Key = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[^$]/, 'must not begin with $')
  .refine((key) => !RESERVED_KEYS.has(key), 'is a reserved key')

const byteLengthOf = (value: object): number => Buffer.byteLength(JSON.stringify(value))

/** Metadata to add to files or documents. */
export const AddedMetadata = z
  .record(Key, z.union([Scalar, z.null(), z.array(Scalar).max(MAX_LIST_VALUES)]))
  .refine((metadata) => Object.keys(metadata).length <= MAX_KEYS, `must have at most ${MAX_KEYS} keys`)
  .refine(
    (metadata) => byteLengthOf(metadata) <= MAX_METADATA_BYTES,
    `must have at most ${MAX_METADATA_BYTES} bytes`,
  )

// JavaScript moves such keys before all others.
const INTEGER = /^\d+$/

const Pattern = z
  .string()
  .min(1)
  .max(500)
  .refine((pattern) => !INTEGER.test(pattern), 'must not be a number; write 2024/ for a folder')

/** Metadata to add to the files that match a pattern. */
export const AddedFileMetadata = z
  .record(Pattern, AddedMetadata)
  .refine(
    (metadata) => Object.keys(metadata).length <= MAX_PATTERNS,
    `must have at most ${MAX_PATTERNS} patterns`,
  )
  .refine(
    (metadata) => byteLengthOf(metadata) <= MAX_FILE_METADATA_BYTES,
    `must have at most ${MAX_FILE_METADATA_BYTES} bytes`,
  )

/** Reports keys that are fields of documents. */
export function rejectDocumentKeys(
  metadata: z.output<typeof AddedMetadata>,
  context: z.core.$RefinementCtx,
): void {
  for (const key of Object.keys(metadata))
    if (DOCUMENT_KEYS.has(key))
      context.addIssue({ code: 'custom', path: ['metadata', key], message: 'is a field of documents' })
}
