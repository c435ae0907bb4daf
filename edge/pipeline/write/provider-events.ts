import { z } from 'zod'
import { type ErrorCode, Failure, fail } from '../../../sql/errors.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Edge } from '../context.ts'
import { findMaxJsonBytes } from '../request/input.ts'

/** Response body of the routes that receive provider events. */

export const Received = z.strictObject({ received: z.literal('true') }).meta({ id: 'Received' })
export const RECEIVED = { received: 'true' } as const

/**
 * Reads the bytes that a provider has signed.
 * @throws fail(refused), the only error of such routes, for a body that is too large.
 */
export function readEventBytes(edge: Edge, request: EdgeRequest, refused: ErrorCode): Promise<Uint8Array> {
  return request.body.readBytes(findMaxJsonBytes(edge.settings)).catch((error) => {
    if (error instanceof Failure && error.code === 'request.too_large') throw fail(refused)
    throw error
  })
}
