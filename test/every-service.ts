import { WEBHOOK_SECRET } from './payment-events.ts'
import { WEBHOOK_SECRET as MAIL_SECRET } from './standins/resend.ts'

export const METRICS_TOKEN = 'a-token-of-the-reader-of-metrics'

export const PUBLIC_BASE_URL = 'http://localhost:8000'

/** Settings of an edge that enable every route. */
export const ALL_SERVICES_ENV = {
  PUBLIC_BASE_URL,
  // No worker runs jobs here, so requests that would wait for a job return 202 immediately.
  REQUEST_WAIT_SECONDS: '0',
  RATE_LIMIT_INVITE: '0',
  METRICS_TOKEN,
  RAG_EMBEDDINGS: 'lexical',
  OPENAI_API_KEY: 'sk-test',
  EMAIL_PROVIDER_API_KEY: 're_test',
  EMAIL_PROVIDER_WEBHOOK_SECRET: MAIL_SECRET,
  EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
  TELEPHONY_ACCOUNT_SID: `AC${'0'.repeat(32)}`,
  TELEPHONY_AUTH_TOKEN: 'token',
  TELEPHONY_PHONE_NUMBER: '+14155550100',
  PROVIDER_SECRET_KEY: 'sk_test_standin',
  PROVIDER_WEBHOOK_SECRET: WEBHOOK_SECRET,
}
