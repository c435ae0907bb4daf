import { METRICS_TOKEN } from './requests.ts'

/** The settings of an edge that can be asked everything. Nobody does its jobs, and it waits for none. */
export const EDGE_SETTINGS = {
  REQUEST_WAIT_SECONDS: '0',
  // A read that takes long is measured, not cut off.
  READ_TIMEOUT_SECONDS: '3600',
  // What ended in the last 20 hours is shown.
  WORKER_KEEP_RESULT_SECONDS: '86400',
  METRICS_TOKEN,
  RAG_EMBEDDINGS: 'lexical',
  OPENAI_API_KEY: 'sk-test',
  EMAIL_PROVIDER_API_KEY: 're_test',
  EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
  PROVIDER_SECRET_KEY: 'sk_test_standin',
  PROVIDER_WEBHOOK_SECRET: 'whsec_standin',
}
