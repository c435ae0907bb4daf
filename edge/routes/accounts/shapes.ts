import { z } from 'zod'
import { ROLES } from '../../../sql/accounts/lists.ts'
import type { ErrorCode } from '../../../sql/errors.ts'
import { Timestamp } from '../../pipeline/request/schemas.ts'

/** Requests and responses of the account routes. */

/** Errors of requests with a new password. */
export const PASSWORD_ERRORS = [
  'account.password_short',
  'account.password_simple',
  'account.password_common',
] as const satisfies readonly ErrorCode[]

// The maximum limits the cost of a hash. `requireAllowedPassword` applies the password rules.
export const Password = z.string().min(8).max(1024)

/** The existing password of an account, which may be older than the password rules. */
export const CurrentPassword = z.string().min(1).max(1024)

export const User = z
  .strictObject({
    id: z.int(),
    email: z.string(),
    full_name: z.string().nullable(),
    is_active: z.boolean(),
    is_verified: z.boolean(),
    role: z.enum(ROLES),
    last_login: Timestamp.nullable(),
    created_at: Timestamp,
    updated_at: Timestamp.nullable(),
    deletion_at: Timestamp.nullable().meta({
      description: 'When the account will be deleted; null: no deletion is pending',
    }),
  })
  .meta({ id: 'UserResponse' })

export const Token = z
  .strictObject({ access_token: z.string(), token_type: z.literal('bearer') })
  .meta({ id: 'TokenResponse' })

export const Detail = z.strictObject({ detail: z.string() }).meta({ id: 'Detail' })

/** Token from an email. */
export const MailedToken = z.string().min(1).max(200)
