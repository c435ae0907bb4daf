import { z } from 'zod'

export const ON_CONFLICT = ['skip', 'overwrite', 'fail'] as const
/** Rule for importing a post whose slug already exists. */
export type OnConflict = (typeof ON_CONFLICT)[number]

export const ImportResult = z.strictObject({
  created: z.int().min(0),
  updated: z.int().min(0),
  skipped: z.int().min(0),
  failed: z.int().min(0),
  errors: z.array(z.strictObject({ slug: z.string().nullable(), file: z.string(), message: z.string() })),
})
export type ImportResult = z.output<typeof ImportResult>
