import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { AI_PROVIDERS, PROVIDERS } from '../../tasks/ai/providers.ts'
import { isGuessable } from '../../tasks/platform/settings/fields.ts'
import { AREAS, parseSettings, type Settings, SettingsError } from '../../tasks/platform/settings/settings.ts'
import { DEFAULT_QUOTAS } from '../job-settings.ts'
import { findProblems, KEY, PRODUCTION, settingNamesOf } from './settings-help.ts'

test('an empty environment has the documented defaults', () => {
  const { openAreas, corsOrigins, ...settings } = parseSettings({})
  assert.deepEqual(settings, {
    projectName: 'millrace',
    production: false,
    host: '127.0.0.1',
    port: 8000,
    publicBaseUrl: 'http://127.0.0.1:8000',
    servedHosts: { names: ['localhost', '*.localhost', '127.0.0.1'], addresses: true },
    firstAccountIsAdmin: true,
    webConcurrency: 1,
    sharePort: false,
    databaseUrl: undefined,
    databaseReplicaUrl: undefined,
    databaseAppRole: undefined,
    databaseUrlUnpooled: undefined,
    databasePooled: false,
    dataDir: '.data',
    secretKey: undefined,
    secretKeysPrevious: [],
    apiKeyRate: null,
    startRates: { sms: null, email: null, aiProvider: null },
    authLevel: 'rbac',
    adminEmail: undefined,
    adminPassword: undefined,
    registrationEnabled: true,
    invitesNeedVerification: false,
    accessTokenSeconds: 15 * 60,
    refreshTokenSeconds: 14 * 86_400,
    sessionMaxSeconds: null,
    requireAdminTotp: false,
    passwordRules: { minLength: 8, minClasses: 1, refuseCommon: true },
    resetTokenSeconds: 60 * 60,
    verifyTokenSeconds: 24 * 3600,
    inviteTokenSeconds: 14 * 86_400,
    accountDeletionDays: 7,
    loginMaxFailures: 5,
    loginLockSeconds: 900,
    limits: {
      login: { max: 30, seconds: 60 },
      register: { max: 30, seconds: 60 },
      passwordReset: { max: 10, seconds: 60 },
      invite: { max: 20, seconds: 3600 },
      export: { max: 5, seconds: 86_400 },
    },
    maxStreams: { perAddress: 100, perAccount: 1000 },
    metrics: { token: undefined, port: undefined },
    trustProxy: false,
    geoHeader: null,
    workerProcesses: 1,
    workerThreads: 8,
    workerQueues: undefined,
    leaseMs: 2000,
    workerMaxTries: 3,
    highPriority: 'admins',
    jobRetention: [3600, 604_800],
    retentionDays: {
      audit: 365,
      sends: 90,
      usage: 365,
      previews: 30,
      invites: 90,
      deletedDocuments: 30,
      searchWords: 30,
      paymentEvents: 90,
      webhooks: 30,
      exports: 7,
    },
    webhooks: {
      allowed: ['127.0.0.0/8', '::1/128'],
      timeoutMs: 15_000,
      rates: { verified: { max: 6000, seconds: 60 }, unverified: { max: 10, seconds: 60 } },
      retryMs: [5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800, 28_800].map((seconds) => seconds * 1000),
    },
    quotas: DEFAULT_QUOTAS,
    trashDays: 30,
    requestWaitSeconds: 120,
    readTimeoutMs: 2_000,
    slowReadMs: { list: 5_000, search: 10_000, statistics: 20_000 },
    writeTimeoutMs: 30_000,
    blog: { title: 'millrace', postUrl: null, maxRevisions: 100 },
    email: {
      smtpUrl: 'outbox:',
      from: 'millrace@localhost',
      apiKey: null,
      apiBaseUrl: 'https://api.resend.com',
      attachmentsMaxBytes: 25 * 1024 * 1024,
      retryMs: 48 * 3_600_000,
      webhookSecret: null,
    },
    telephony: {
      accountSid: null,
      authToken: null,
      phoneNumber: null,
      smsFrom: null,
      apiBaseUrl: 'https://api.twilio.com',
      retryMs: 4 * 3_600_000,
    },
    blobs: { store: 'postgres', s3: null },
    payments: {
      secretKey: undefined,
      webhookSecrets: [],
      apiBaseUrl: 'https://api.stripe.com',
      successUrl: undefined,
      cancelUrl: undefined,
      refunds: 'owner',
    },
    ai: {
      enabled: true,
      provider: 'openai',
      model: 'gpt-4o-mini',
      fallbackModel: null,
      temperature: 0.7,
      maxTokens: 1000,
      timeoutSeconds: 120,
      historyMessages: 20,
      historyTokens: 8000,
      documentTokens: 16000,
      sentimentEnabled: false,
      budgets: { day_tokens: 0, day_cost: 0, month_tokens: 0, month_cost: 0 },
      endpoints: Object.fromEntries(
        AI_PROVIDERS.map((name) => [name, { apiKey: null, baseUrl: PROVIDERS[name].baseUrl }]),
      ) as never,
    },
    rag: { root: '.', embeddings: 'local', model: 'Xenova/all-MiniLM-L6-v2', modelDir: undefined },
    maxUploadBytes: 100 * 1024 * 1024,
    maxSpeechCharacters: 100_000,
    maxDocumentPages: 20_000,
    maxDocumentTextBytes: 64 * 2 ** 20,
    maxDocumentCpuSeconds: 3600,
    maxImportBytes: 20 * 1024 * 1024,
    maxJsonBytes: undefined,
    ...{ ocrLanguages: 'eng', visionProvider: 'tesseract' as const, visionPictures: 'auto' as const },
    ...{ magicLinkSeconds: 900, oidc: null },
    webauthn: { rpId: null, origins: [] },
    llmCatalogUrl: 'https://models.dev/api.json',
    logLevel: 'info',
    accessLog: 'all',
    ...{ slowQueryMs: 1000, tracing: null },
    validateSchemas: true,
  })
  assert.deepEqual([...openAreas].sort(), ['ai', 'comms', 'jobs', 'llm', 'rag', 'tasks', 'voice'])
  assert.deepEqual([...corsOrigins], [])
})

test('an empty or unknown variable counts as unset', () => {
  const empty = Object.fromEntries(
    ['PORT', 'SECRET_KEY', 'DATABASE_URL', 'TRUST_PROXY', 'OPEN_AREAS', 'ADMIN_EMAIL', 'NODE_ENV'].map(
      (name) => [name, ''],
    ),
  )
  assert.deepEqual(
    parseSettings({ ...empty, PATH: '/bin', port: 'x', UNKNOWN: 'x', SHELL: undefined }),
    parseSettings({}),
  )
})

test('given values override the defaults', () => {
  const settings = parseSettings({
    PROJECT_NAME: 'mill-2',
    HOST: '0.0.0.0',
    PORT: '0',
    PUBLIC_BASE_URL: 'https://mill.example.com/base//',
    DATABASE_URL: 'postgres://u@%2Ftmp%2Fsocket:5432/x',
    AUTH_LEVEL: 'none',
    ADMIN_EMAIL: 'Root@Example.com',
    ADMIN_PASSWORD: '12345678',
    ACCESS_TOKEN_MINUTES: '5',
    REFRESH_TOKEN_DAYS: '2',
    SESSION_MAX_DAYS: '3',
    CORS_ORIGINS: 'https://a.example, http://localhost:3000 ,',
    WORKER_QUEUES: 'documents,system',
    WORKER_PROCESSES: '0',
    MAX_UPLOAD_BYTES: String(2 ** 40),
    VISION_PROVIDER: 'none',
    LOG_LEVEL: 'silent',
  })
  assert.equal(settings.projectName, 'mill-2')
  assert.equal(settings.port, 0)
  assert.equal(settings.publicBaseUrl, 'https://mill.example.com/base')
  assert.equal(settings.databaseUrl, 'postgres://u@%2Ftmp%2Fsocket:5432/x')
  assert.equal(settings.databaseUrlUnpooled, settings.databaseUrl)
  assert.deepEqual(
    [settings.authLevel, settings.adminEmail, settings.adminPassword],
    ['none', 'root@example.com', '12345678'],
  )
  assert.deepEqual([settings.accessTokenSeconds, settings.refreshTokenSeconds], [300, 172_800])
  assert.equal(settings.sessionMaxSeconds, 259_200)
  assert.deepEqual([...settings.corsOrigins], ['https://a.example', 'http://localhost:3000'])
  assert.deepEqual(
    [settings.workerQueues, settings.workerProcesses, settings.maxUploadBytes],
    [['documents', 'system'], 0, 2 ** 40],
  )
})

test('text messages have one default sender', () => {
  const senderOf = (env: Record<string, string>) => parseSettings(env).telephony.smsFrom
  const number = { TELEPHONY_PHONE_NUMBER: '+14155552671' }
  assert.equal(senderOf(number), '+14155552671')
  for (const sender of ['Mill', 'A', '1st & Co', '12345', '+14155550100'])
    assert.equal(senderOf({ ...number, TELEPHONY_SMS_FROM: sender }), sender)
  const service = { TELEPHONY_MESSAGING_SERVICE_SID: `MG${'0'.repeat(32)}` }
  assert.equal(senderOf({ ...number, ...service }), `MG${'0'.repeat(32)}`)
  assert.deepEqual(settingNamesOf(findProblems({ ...service, TELEPHONY_SMS_FROM: 'Mill' })), [
    'TELEPHONY_SMS_FROM',
  ])
})

test('missing values are derived from given ones', () => {
  assert.equal(parseSettings({ HOST: '::1', PORT: '81' }).publicBaseUrl, 'http://[::1]:81')
  const direct = { DATABASE_URL: 'postgres://pooler/x', DATABASE_URL_UNPOOLED: 'postgres://direct/x' }
  const ways = ({ databaseUrlUnpooled, databasePooled }: Settings) => [databaseUrlUnpooled, databasePooled]
  assert.deepEqual(ways(parseSettings(direct)), ['postgres://direct/x', true])
  const { DATABASE_URL } = direct
  assert.deepEqual(ways(parseSettings({ DATABASE_URL })), [DATABASE_URL, false])
  assert.deepEqual(ways(parseSettings({ DATABASE_URL, DATABASE_URL_UNPOOLED: DATABASE_URL })), [
    DATABASE_URL,
    false,
  ])
  const { DATABASE_URL_UNPOOLED } = direct
  assert.deepEqual(
    ways(parseSettings({ DATABASE_URL_UNPOOLED })),
    [undefined, false],
    'the embedded database has one way',
  )
})

test('a rate limit is a number of requests in a number of seconds, or none', () => {
  assert.deepEqual(parseSettings({ RATE_LIMIT_REGISTER: '1/1' }).limits.register, { max: 1, seconds: 1 })
  assert.deepEqual(parseSettings({ RATE_LIMIT_PASSWORD_RESET: '0' }).limits.passwordReset, null)
  assert.deepEqual(parseSettings({}).startRates, { sms: null, email: null, aiProvider: null })
  const rates = { RATE_LIMIT_SMS: '10/1', RATE_LIMIT_EMAIL: '999999/86400', RATE_LIMIT_AI_PROVIDER: '0' }
  assert.deepEqual(parseSettings(rates).startRates, {
    sms: { max: 10, seconds: 1 },
    email: { max: 999_999, seconds: 86_400 },
    aiProvider: null,
  })
})

test('flags are words, and "false" is false', () => {
  for (const text of ['false', '0', 'no', 'off', 'FALSE', 'False'])
    assert.equal(parseSettings({ REGISTRATION_ENABLED: text }).registrationEnabled, false, text)
  for (const text of ['true', '1', 'yes', 'on', 'TRUE'])
    assert.equal(parseSettings({ TRUST_PROXY: text }).trustProxy, true, text)
  for (const text of ['maybe', '2', 'nope', 'null', ' '])
    assert.deepEqual(settingNamesOf(findProblems({ TRUST_PROXY: text })), ['TRUST_PROXY'], text)
})

test('the header with the client address requires a trusted proxy', () => {
  const trusted = { TRUST_PROXY: 'yes' }
  assert.equal(parseSettings({ ...trusted, GEO_HEADER: 'CF-IPCountry' }).geoHeader, 'cf-ipcountry')
  assert.equal(parseSettings({ ...trusted, GEO_HEADER: '' }).geoHeader, null)
  for (const env of [{}, { TRUST_PROXY: 'false' }])
    assert.deepEqual(findProblems({ ...env, GEO_HEADER: 'x-client-place' }), [
      'GEO_HEADER: needs TRUST_PROXY=true',
    ])
  for (const name of ['authorization', 'x-country', '*'])
    assert.deepEqual(settingNamesOf(findProblems({ ...trusted, GEO_HEADER: name })), ['GEO_HEADER'], name)
})

test('passkeys have the origins of pages that their domain covers', () => {
  const api = { PUBLIC_BASE_URL: 'https://api.mill.test/base' }
  const pages = { CORS_ORIGINS: 'https://mill.test,https://app.mill.test,https://xmill.test' }
  const parse = (env: Record<string, string>) => parseSettings({ ...api, ...env }).webauthn
  assert.deepEqual(parse(pages), { rpId: 'api.mill.test', origins: ['https://api.mill.test'] })
  assert.deepEqual(parse({ ...pages, WEBAUTHN_RP_ID: 'Mill.test' }), {
    rpId: 'mill.test',
    origins: ['https://api.mill.test', 'https://mill.test', 'https://app.mill.test'],
  })
  const android = `android:apk-key-hash:${'a'.repeat(43)}`
  assert.deepEqual(parse({ WEBAUTHN_ORIGINS: `${android},https://api.mill.test:81` }).origins, [
    android,
    'https://api.mill.test:81',
  ])
  assert.equal(parseSettings({ PUBLIC_BASE_URL: 'http://[::1]:8000' }).webauthn.rpId, null)
  for (const [name, env] of [
    ['WEBAUTHN_RP_ID', { ...pages, WEBAUTHN_RP_ID: 'pi.mill.test' }],
    ['WEBAUTHN_ORIGINS', { WEBAUTHN_ORIGINS: 'https://app.mill.test' }],
    ['WEBAUTHN_ORIGINS', { WEBAUTHN_RP_ID: 'mill.test', WEBAUTHN_ORIGINS: 'https://xmill.test' }],
    ['WEBAUTHN_ORIGINS', { PUBLIC_BASE_URL: 'http://10.0.0.1', WEBAUTHN_ORIGINS: 'https://mill.test' }],
  ] as const)
    assert.deepEqual(settingNamesOf(findProblems({ ...api, ...env })), [name], JSON.stringify(env))
})

test('sign-in by OpenID Connect needs an issuer and a client', () => {
  const env = { OIDC_ISSUER: 'https://id.example/realm', OIDC_CLIENT_ID: 'mill' }
  assert.deepEqual(parseSettings(env).oidc, {
    issuer: 'https://id.example/realm',
    clientId: 'mill',
    clientSecret: null,
    scopes: 'openid email profile',
    name: 'OpenID Connect',
  })
  assert.equal(
    parseSettings({ ...env, OIDC_ISSUER: 'http://localhost:9000' }).oidc!.issuer,
    'http://localhost:9000',
  )
  assert.deepEqual(findProblems({ OIDC_ISSUER: env.OIDC_ISSUER }), [
    'OIDC_CLIENT_ID: required with OIDC_ISSUER',
  ])
  for (const bad of ['id.example', 'http://id.example', 'https://id.example/?x', 'ftp://id.example'])
    assert.deepEqual(settingNamesOf(findProblems({ ...env, OIDC_ISSUER: bad })), ['OIDC_ISSUER'], bad)
  for (const name of ['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'])
    assert.deepEqual(findProblems({ [name]: 'x' }), ['OIDC_ISSUER: required with OIDC_CLIENT_ID'])
})

test('numbers are whole numbers in digits', () => {
  assert.equal(parseSettings({ PORT: ' 81 ' }).port, 81)
  for (const text of [
    ' ',
    'x',
    '1.5',
    '1e3',
    '0x50',
    '8000px',
    '1_000',
    'NaN',
    'Infinity',
    'true',
    '--1',
    '9'.repeat(20),
  ]) {
    assert.deepEqual(
      settingNamesOf(findProblems({ PORT: text, MAX_JSON_BYTES: text })),
      ['MAX_JSON_BYTES', 'PORT'],
      text,
    )
  }
})

test('numbers have limits', () => {
  const bounds: Readonly<Record<string, readonly [number, number]>> = {
    PORT: [0, 65_535],
    WEB_CONCURRENCY: [1, 256],
    ACCESS_TOKEN_MINUTES: [1, 1440],
    REFRESH_TOKEN_DAYS: [1, 365],
    RESET_TOKEN_MINUTES: [1, 10_080],
    VERIFY_TOKEN_HOURS: [1, 8760],
    INVITE_TOKEN_DAYS: [1, 365],
    LOGIN_MAX_FAILURES: [1, 1000],
    LOGIN_LOCK_SECONDS: [1, 86_400],
    WORKER_PROCESSES: [0, 256],
    WORKER_THREADS: [1, 256],
    LEASE_SECONDS: [0.2, 300],
    WORKER_MAX_TRIES: [1, 100],
    REQUEST_WAIT_SECONDS: [0, 3600],
    TRASH_DAYS: [0, 3650],
    MAX_JSON_BYTES: [1, 2 ** 30],
    METRICS_PORT: [1, 65_535],
    MAX_STREAMS_PER_ADDRESS: [0, 1_000_000_000],
    MAX_STREAMS_PER_ACCOUNT: [0, 1_000_000_000],
  }
  for (const [name, [min, max]] of Object.entries(bounds)) {
    for (const good of [min, max]) assert.deepEqual(findProblems({ [name]: String(good) }), [], name)
    for (const bad of [min - 1, max + 1])
      assert.deepEqual(settingNamesOf(findProblems({ [name]: String(bad) })), [name], `${name}=${bad}`)
  }
})

test('choices and forms are checked', () => {
  const wrong: Readonly<Record<string, readonly string[]>> = {
    PROJECT_NAME: ['Mill', '1mill', 'a b', 'a;b', 'x'.repeat(41)],
    NODE_ENV: ['prod', 'PRODUCTION'],
    PUBLIC_BASE_URL: ['mill.example.com', 'ftp://x', 'javascript:alert(1)'],
    DATABASE_URL: ['mysql://x', 'localhost:5432', 'postgresql://a,b/n?target_session_attrs=standby'],
    DATABASE_URL_UNPOOLED: ['x'],
    DATABASE_REPLICA_URL: ['x', 'postgresql://a/n?target_session_attrs=read-write'],
    SECRET_KEY: ['too short'],
    SEARCH_WORDS_KEEP_DAYS: ['1', '6'],
    SECRET_KEYS_PREVIOUS: ['too short', `${KEY},too short`, [1, 2, 3, 4].map((n) => KEY + n).join()],
    AUTH_LEVEL: ['RBAC', 'off'],
    OPEN_AREAS: ['jobs,documents', 'all', 'jobs;ai'],
    CORS_ORIGINS: [
      '*',
      'app.example.com',
      'https://app.example.com/',
      'https://app.example.com/path',
      'https://ok.example,HTTPS://App.example.com',
      'null',
    ],
    BLOG_TITLE: [' ', 'x'.repeat(201)],
    BLOG_POST_URL: ['https://blog.example.com/', 'blog.example.com/{slug}', 'javascript:{slug}'],
    BLOG_MAX_REVISIONS: ['0', '-1', '1.5', '10001'],
    WEBAUTHN_RP_ID: ['https://mill.example', 'mill', '10.0.0.1', 'mill.example:443'],
    WEBAUTHN_ORIGINS: [
      'mill.example',
      'https://mill.example/',
      'android:apk-key-hash:abc',
      'ftp://mill.example',
      ',',
    ],

    OIDC_SCOPES: ['email profile', 'openid,email'],
    RATE_LIMIT_LOGIN: ['30', '0/60', '30/0', '-1/60', '30/60/1', '1.5/60', '10000/60', '1/100000', 'off'],
    RATE_LIMIT_SMS: ['10', '0/1', '10/0', '1.5/1', '1000000/1', '1/86401', 'off'],
    RATE_LIMIT_EMAIL: ['10', '1/86401'],
    RATE_LIMIT_AI_PROVIDER: ['10', '1/86401'],
    EMAIL_SMTP_URL: ['mail.example.com', 'http://x', 'smtp://', 'smtp://u:100%@x', 'outbox'],
    EMAIL_PROVIDER_FROM_EMAIL: ['Mill <mill>', 'mill', 'Mill, Old <mill@example.com>'],
    EMAIL_PROVIDER_WEBHOOK_SECRET: [
      'secret',
      'whsec_',
      'whsec_not base64 at all',
      'abc_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    ],
    EMAIL_PROVIDER_API_BASE_URL: ['api.example.com', 'ftp://x'],
    TELEPHONY_ACCOUNT_SID: ['AC123', `SK${'0'.repeat(32)}`, `AC${'x'.repeat(32)}`],
    TELEPHONY_PHONE_NUMBER: ['4155552671', '+0155552671', '+1 415 555 2671', 'Mill'],
    TELEPHONY_SMS_FROM: [
      'Mill and Sons',
      '12',
      '123456789',
      '+0155552671',
      'Mühle',
      ' Mill',
      `MG${'0'.repeat(32)}`,
    ],
    TELEPHONY_MESSAGING_SERVICE_SID: ['MG123', 'Mill', `AC${'0'.repeat(32)}`],
    TELEPHONY_API_BASE_URL: ['api.example.com', 'twilio'],
    PROVIDER_API_BASE_URL: ['api.stripe.com', 'ftp://x', 'https://api.stripe.com/v1', 'https://u:p@x'],
    PAYMENT_SUCCESS_URL: ['thanks', '//x.example', 'javascript:alert(1)', 'https://', '/a b'],
    VISION_PROVIDER: ['openai'],
    LLM_CATALOG_URL: ['models.dev', 'ftp://x', 'off'],
  }
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values)
      assert.deepEqual(settingNamesOf(findProblems({ [name]: value })), [name], `${name}=${value}`)
  }
  assert.match(
    findProblems({ OPEN_AREAS: 'documents' })[0]!,
    new RegExp(AREAS.join(', ')),
    'with the names that are known',
  )
})

test('all problems are reported together, one line each', () => {
  const wrong = {
    NODE_ENV: 'production',
    PORT: 'x',
    AUTH_LEVEL: 'x',
    TRUST_PROXY: 'x',
    ADMIN_EMAIL: 'root@example.com',
  }
  const found = findProblems(wrong)
  assert.deepEqual(settingNamesOf(found), [
    'ADMIN_EMAIL',
    'AUTH_LEVEL',
    'DATABASE_URL',
    'PORT',
    'SECRET_KEY',
    'TRUST_PROXY',
  ])
  try {
    parseSettings(wrong)
  } catch (error) {
    assert.equal((error as Error).message.split('\n').length, 1 + found.length)
  }
})

test('production needs a key and a database, has closed areas, and does not validate every answer', () => {
  assert.deepEqual(settingNamesOf(findProblems({ NODE_ENV: 'production' })), ['DATABASE_URL', 'SECRET_KEY'])
  assert.deepEqual(settingNamesOf(findProblems({ ...PRODUCTION, SECRET_KEY: '' })), ['SECRET_KEY'])
  const settings = parseSettings(PRODUCTION)
  assert.deepEqual([settings.production, settings.openAreas.size, settings.validateSchemas], [true, 0, false])
  assert.deepEqual([...parseSettings({ ...PRODUCTION, OPEN_AREAS: 'jobs, ai' }).openAreas], ['jobs', 'ai'])
})

const createKey = (): string => randomBytes(32).toString('hex')

test('production rejects a weak key, which development accepts', () => {
  const guessable = [
    '0123456789abcdef0123456789abcdef',
    'abcdefghijklmnopqrstuvwxyz0123456789',
    '98765432109876543210987654321098',
    'a'.repeat(64),
    'secret'.repeat(6).slice(0, 32),
    'change-me change-me change-me change-me',
    '11112222333344445555111122223333',
  ]
  for (const key of guessable) {
    assert.deepEqual(findProblems({ ...PRODUCTION, SECRET_KEY: key }), [
      'SECRET_KEY: must be random in production; `openssl rand -hex 32` prints a key',
    ])
    assert.equal(parseSettings({ SECRET_KEY: key }).secretKey, key)
    assert.deepEqual(findProblems({ ...PRODUCTION, SECRET_KEYS_PREVIOUS: `${createKey()}, ${key}` }), [
      'SECRET_KEYS_PREVIOUS: must be random in production, like SECRET_KEY',
    ])
  }
  for (const form of ['hex', 'base64', 'base64url'] as const)
    for (let i = 0; i < 1000; i++)
      assert.ok(!isGuessable(randomBytes(form === 'hex' ? 16 : 24).toString(form)), form)
})

test('previous keys are other keys, separated by commas', () => {
  const [first, second] = [createKey(), createKey()]
  const { secretKeysPrevious } = parseSettings({
    ...PRODUCTION,
    SECRET_KEYS_PREVIOUS: `${first}, ${second},`,
  })
  assert.deepEqual(secretKeysPrevious, [first, second])
  assert.deepEqual(findProblems({ SECRET_KEY: first, SECRET_KEYS_PREVIOUS: `${second},${first}` }), [
    'SECRET_KEYS_PREVIOUS: must not contain SECRET_KEY',
  ])
})

test('a password without its address, or vice versa, is a problem', () => {
  assert.deepEqual(settingNamesOf(findProblems({ ADMIN_EMAIL: 'a@example.com' })), ['ADMIN_EMAIL'])
  assert.deepEqual(settingNamesOf(findProblems({ ADMIN_PASSWORD: 'long enough' })), ['ADMIN_EMAIL'])
  assert.deepEqual(settingNamesOf(findProblems({ ADMIN_EMAIL: 'x', ADMIN_PASSWORD: 'short' })), [
    'ADMIN_EMAIL',
    'ADMIN_PASSWORD',
  ])
})

test('settings cannot be changed', () => {
  assert.throws(() => Object.assign(parseSettings({}), { port: 1 }), TypeError)
})

test('no problem message contains a value', () => {
  const secrets = {
    SECRET_KEY: 'hunter2-short',
    SECRET_KEYS_PREVIOUS: 'hunter2',
    ADMIN_PASSWORD: 'hunt2',
    DATABASE_URL: 'mysql://u:hunter2@x',
    DATABASE_URL_UNPOOLED: 'hunter2://',
    ADMIN_EMAIL: 'hunter2',
  }
  try {
    parseSettings(secrets)
    assert.fail('it was taken')
  } catch (error) {
    assert.ok(error instanceof SettingsError)
    assert.equal(error.problems.length, 6)
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /hunter2|hunt2/)
  }
})

test('a process with invalid settings prints lines without values and exits with status 2', () => {
  const main = fileURLToPath(new URL('../../edge/main.ts', import.meta.url))
  const env = {
    PATH: process.env.PATH,
    PORT: 'x',
    SECRET_KEY: 'hunter2',
    NODE_ENV: 'production',
    DATABASE_URL: 'mysql://u:hunter2@x',
  }
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', main],
    { env, encoding: 'utf8' },
  )
  assert.equal(status, 2)
  const lines = stderr.trim().split('\n')
  assert.deepEqual(settingNamesOf(lines.slice(1).map((line) => line.trim())), [
    'DATABASE_URL',
    'PORT',
    'SECRET_KEY',
  ])
  assert.doesNotMatch(stderr + stdout, /hunter2|\.ts:/)
})

test('logged settings contain no secrets', () => {
  const script = `
    const { createLog } = await import(${JSON.stringify(new URL('../../tasks/platform/log.ts', import.meta.url).href)})
    const { parseSettings } = await import(${JSON.stringify(new URL('../../tasks/platform/settings/settings.ts', import.meta.url).href)})
    const settings = parseSettings(process.env)
    const log = await createLog('info', 'test')
    log.info({ settings }, 'nested')
    log.info(settings, 'flat')
    log.info({ headers: { authorization: 'hunter2', cookie: 'hunter2' }, password: 'hunter2' }, 'request')
    log.flush()`
  const env = {
    PATH: process.env.PATH,
    SECRET_KEY: `hunter2-${KEY}`,
    SECRET_KEYS_PREVIOUS: `hunter2-older-${KEY}`,
    DATABASE_URL: 'postgres://u:hunter2@x/y',
    ADMIN_EMAIL: 'a@example.com',
    ADMIN_PASSWORD: 'hunter2-hunter2',
    EMAIL_PROVIDER_API_KEY: 'hunter2',
    S3_ENDPOINT_URL: 'http://127.0.0.1:9000',
    S3_ACCESS_KEY: 'hunter2',
    S3_SECRET_KEY: 'hunter2',
    PROVIDER_SECRET_KEY: 'hunter2',
    PROVIDER_WEBHOOK_SECRET: 'hunter2',
    METRICS_TOKEN: 'hunter2-hunter2-hunter2',
    ...{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_EXPORTER_OTLP_HEADERS: 'x-key=hunter2' },
  }
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script],
    { env, encoding: 'utf8' },
  )
  assert.equal(stdout.trim().split('\n').length, 3, stderr)
  assert.match(stdout, /"port":8000/)
  assert.doesNotMatch(stdout, /hunter2/)
})
