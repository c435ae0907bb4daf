import { z } from 'zod'
import { parseLocation } from './location.ts'

/** The settings of blob storage; part of the schema in `tasks/platform/settings/settings.ts`. */

export const blobShape = {
  BLOB_STORE: z
    .string()
    .refine(
      (text) => parseLocation(text) !== null,
      'must be postgres, file:DIR, s3://bucket or s3://bucket/prefix',
    )
    .default('postgres'),
  S3_ENDPOINT_URL: z.url({ protocol: /^https?$/ }).optional(),
  S3_REGION: z
    .string()
    .regex(/^[a-z0-9-]{1,63}$/, 'must be the name of a region such as eu-central-1')
    .optional(),
  S3_ACCESS_KEY: z.string().min(1).optional(),
  S3_SECRET_KEY: z.string().min(1).optional(),
}

export interface BlobSettings {
  /** The location for new bytes. */
  readonly store: string
  /**
   * Connection to the object store; null if not configured. Needed even if `store` is elsewhere, because older bytes
   * may be in the object store.
   */
  readonly s3: S3Settings | null
}

export interface S3Settings {
  /** Defaults to Amazon's endpoint. */
  readonly endpointUrl: string | undefined
  readonly region: string | undefined
  /** Defaults to the machine's role. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined
}

export function buildBlobSettings(env: z.output<z.ZodObject<typeof blobShape>>): BlobSettings {
  const { S3_ENDPOINT_URL: endpointUrl, S3_REGION: region, S3_ACCESS_KEY, S3_SECRET_KEY } = env
  const credentials =
    S3_ACCESS_KEY === undefined || S3_SECRET_KEY === undefined
      ? undefined
      : { accessKeyId: S3_ACCESS_KEY, secretAccessKey: S3_SECRET_KEY }
  const reachable = endpointUrl !== undefined || region !== undefined
  return { store: env.BLOB_STORE, s3: reachable ? { endpointUrl, region, credentials } : null }
}

/** Checks settings that require each other, by their raw values. Returns the problems. */
export function checkBlobSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  const problems: string[] = []
  const { S3_ENDPOINT_URL: endpoint, S3_ACCESS_KEY: key, S3_SECRET_KEY: secret } = env
  if (env.BLOB_STORE?.startsWith('s3:') && endpoint === undefined && env.S3_REGION === undefined)
    problems.push("BLOB_STORE: s3:// needs S3_REGION, or S3_ENDPOINT_URL for a server other than Amazon's")
  if ((key === undefined) !== (secret === undefined))
    problems.push('S3_ACCESS_KEY: needs S3_SECRET_KEY, and vice versa')
  // Without keys, the S3 client falls back to the machine's IAM role, which exists only on AWS.
  if (endpoint !== undefined && key === undefined && secret === undefined)
    problems.push('S3_ENDPOINT_URL: needs S3_ACCESS_KEY and S3_SECRET_KEY')
  return problems
}
