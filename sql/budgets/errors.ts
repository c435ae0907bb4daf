/** Errors of budgets. `errors.ts` adds them to its table. */
const SPENT = '{used} used and {reserved} reserved by running requests, {left} left until {resets_at}'

export const budgetErrors = {
  'quota.ai_budget': {
    detail: `The account has reached its AI budget of {amount} {unit} per {period} ({setting}): ${SPENT}`,
  },
  'quota.ai_key_budget': {
    detail: `The API key has reached its AI budget of {amount} {unit} per {period}: ${SPENT}`,
  },
} as const

/** A budget that a request would exceed, as in the body of the refusal. */
export interface ExceededBudget {
  /** `account` or `key`. */
  readonly holder: string
  /** Kind such as `day_tokens`. */
  readonly kind: string
  readonly limit: number
  readonly used: number
  /** Estimate for requests that have not ended. */
  readonly reserved: number
  readonly left: number
  readonly resets_at: string
  /** Seconds until the budget resets. */
  readonly resets_in_seconds: number
}
