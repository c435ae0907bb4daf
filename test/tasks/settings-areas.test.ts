import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { findProblems, PRODUCTION, settingNamesOf } from './settings-help.ts'

/** Settings of mail, storage, payments, models, retrieval, languages and queues. */

test('mail uses the configured server, else the provider of the key, else files in development', () => {
  const key = { EMAIL_PROVIDER_API_KEY: 'a/b c' }
  const from = { EMAIL_PROVIDER_FROM_EMAIL: 'mill@example.com' }
  const own = 'smtp://u:p@mail.example.com:2525'
  assert.equal(parseSettings({ ...key, EMAIL_SMTP_URL: own }).email.smtpUrl, own)
  assert.equal(parseSettings(key).email.smtpUrl, 'smtps://resend:a%2Fb%20c@smtp.resend.com:465')
  const { email } = parseSettings({ ...PRODUCTION, ...from })
  assert.deepEqual([email.smtpUrl, email.from, email.apiKey], [null, 'mill@example.com', null])
  assert.equal(parseSettings({ ...PRODUCTION, EMAIL_SMTP_URL: 'outbox:' }).email.smtpUrl, 'outbox:')
  const api = { EMAIL_PROVIDER_API_BASE_URL: 'http://localhost:9/api/', TELEPHONY_API_BASE_URL: 'http://x//' }
  assert.equal(parseSettings(api).email.apiBaseUrl, 'http://localhost:9/api')
  assert.equal(parseSettings(api).telephony.apiBaseUrl, 'http://x')
})

const S3 = { S3_ENDPOINT_URL: 'https://minio.example.com', S3_ACCESS_KEY: 'a', S3_SECRET_KEY: 'b' }

test('bytes are stored in the database, a folder or a bucket', () => {
  for (const store of [
    'postgres',
    'file:blobs',
    'file:/var/lib/a b',
    'file:///srv',
    'file:../up',
    's3://abc',
    's3://a.b-c/p/q',
    's3://abc/',
  ])
    assert.equal(parseSettings({ ...S3, BLOB_STORE: store }).blobs.store, store)
  for (const store of [
    'Postgres',
    'file:',
    'file://host/x',
    'blobs',
    's3:',
    's3://',
    's3://ab',
    's3://ABC',
    's3://abc//x',
    's3://abc/../x',
    's3://abc/./x',
    's3://abc/a b',
    's3://-abc',
    'https://abc',
    'file:a\0b',
  ])
    assert.deepEqual(settingNamesOf(findProblems({ ...S3, BLOB_STORE: store })), ['BLOB_STORE'], store)
})

test('the settings of an object store must fit together', () => {
  assert.deepEqual(parseSettings(S3).blobs.s3, {
    endpointUrl: 'https://minio.example.com',
    region: undefined,
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
  })
  const role = { BLOB_STORE: 's3://abc', S3_REGION: 'eu-central-1' }
  assert.deepEqual(parseSettings(role).blobs.s3, {
    endpointUrl: undefined,
    region: 'eu-central-1',
    credentials: undefined,
  })
  const wrong = { BLOB_STORE: 's3://abc', S3_ACCESS_KEY: 'a', PORT: 'x' }
  assert.deepEqual(settingNamesOf(findProblems(wrong)), ['BLOB_STORE', 'PORT', 'S3_ACCESS_KEY'])
  assert.deepEqual(
    settingNamesOf(findProblems({ S3_ENDPOINT_URL: 'ftp://x', S3_REGION: 'EU 1', S3_SECRET_KEY: 'b' })),
    ['S3_ACCESS_KEY', 'S3_ENDPOINT_URL', 'S3_REGION'],
  )
  assert.deepEqual(settingNamesOf(findProblems({ S3_ENDPOINT_URL: 'http://x' })), ['S3_ENDPOINT_URL'])
})

test('payments have their own settings, which override the provider’s', () => {
  const theirs = { STRIPE_SECRET_KEY: 'sk_test_a', STRIPE_WEBHOOK_SECRET: 'whsec_a' }
  const { secretKey, webhookSecrets } = parseSettings(theirs).payments
  assert.deepEqual([secretKey, webhookSecrets], ['sk_test_a', ['whsec_a']])
  const ours = parseSettings({
    ...theirs,
    PROVIDER_SECRET_KEY: 'sk_test_b',
    PROVIDER_WEBHOOK_SECRET: 'whsec_b',
  }).payments
  assert.deepEqual([ours.secretKey, ours.webhookSecrets], ['sk_test_b', ['whsec_b']])
  assert.equal(
    parseSettings({ PROVIDER_API_BASE_URL: 'http://127.0.0.1:12111/' }).payments.apiBaseUrl,
    'http://127.0.0.1:12111',
  )
  const pages = parseSettings({
    PAYMENT_SUCCESS_URL: '/thanks?s={CHECKOUT_SESSION_ID}',
    PAYMENT_CANCEL_URL: 'https://x.example',
  })
  assert.deepEqual(
    [pages.payments.successUrl, pages.payments.cancelUrl],
    ['/thanks?s={CHECKOUT_SESSION_ID}', 'https://x.example'],
  )
})

test('the model list comes from its public address, another one, or none', () => {
  assert.equal(
    parseSettings({ LLM_CATALOG_URL: 'http://127.0.0.1:1/a' }).llmCatalogUrl,
    'http://127.0.0.1:1/a',
  )
  assert.equal(parseSettings({ LLM_CATALOG_URL: 'none' }).llmCatalogUrl, null)
  assert.equal(parseSettings({ NODE_ENV: 'test' }).llmCatalogUrl, null)
  assert.equal(parseSettings({ NODE_ENV: 'test', LLM_CATALOG_URL: 'http://x/' }).llmCatalogUrl, 'http://x/')
})

test('retrieval has a model if it has embeddings', () => {
  const model = (env: Readonly<Record<string, string>>) => parseSettings(env).rag.model
  assert.equal(model({ RAG_EMBEDDINGS: 'openai' }), 'text-embedding-3-small')
  assert.equal(model({ RAG_EMBEDDINGS: 'lexical', RAG_MODEL: 'x' }), null)
  assert.equal(model({ RAG_MODEL: 'team/model-1.5' }), 'team/model-1.5')
  for (const bad of ['../model', 'a/b/c', 'a b', '/model'])
    assert.deepEqual(settingNamesOf(findProblems({ RAG_MODEL: bad })), ['RAG_MODEL'])
  assert.deepEqual(settingNamesOf(findProblems({ RAG_EMBEDDINGS: 'other' })), ['RAG_EMBEDDINGS'])
})

test('a language without data is rejected, with what to install', () => {
  assert.equal(parseSettings({ OCR_LANGUAGES: 'deu+eng' }).ocrLanguages, 'deu+eng')
  for (const wrong of ['english', 'eng,deu', 'eng+', 'ENG'])
    assert.throws(() => parseSettings({ OCR_LANGUAGES: wrong }), /OCR_LANGUAGES: must be codes/, wrong)
  assert.throws(
    () => parseSettings({ OCR_LANGUAGES: 'eng+xxx' }),
    /OCR_LANGUAGES: requires OCR data that is not installed: @tesseract\.js-data\/xxx$/m,
  )
})

test('a worker has each of its queues once, and at least one', () => {
  assert.deepEqual(parseSettings({ WORKER_QUEUES: 'ai, system,ai' }).workerQueues, ['ai', 'system'])
  assert.throws(
    () => parseSettings({ WORKER_QUEUES: ',' }),
    /WORKER_QUEUES: must be a comma-separated list of queues/,
  )
})
