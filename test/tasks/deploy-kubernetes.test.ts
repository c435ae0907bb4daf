import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { describe, test } from 'node:test'
import { parseAllDocuments, parse as parseYaml } from 'yaml'
import { loadTasks, queuesOf } from '../../tasks/index.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { START_REFUSED_STATUS } from '../../tasks/platform/supervised.ts'
import { assertListed, findLine } from '../listed.ts'
import {
  assertKnownNames,
  operationPaths,
  procfileLines,
  ROOT,
  readFileAt,
  STOP_SECONDS,
  type Variables,
} from './deploy-help.ts'

/** The Kubernetes example agrees with the code. Its objects were validated by hand against Kubernetes's schemas. */

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

interface Container {
  readonly name: string
  readonly image: string
  readonly args: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value: string }[]
  readonly envFrom: readonly Readonly<Record<string, { readonly name: string }>>[]
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly readinessProbe?: Probe
  readonly livenessProbe?: Probe
  readonly startupProbe?: Probe & { readonly periodSeconds: number; readonly failureThreshold: number }
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } }
  readonly securityContext: unknown
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}

interface Template {
  readonly metadata: { readonly labels: Variables; readonly annotations?: Variables }
  readonly spec: {
    readonly containers: readonly Container[]
    readonly terminationGracePeriodSeconds?: number
    readonly securityContext: { readonly runAsNonRoot: boolean; readonly runAsUser: number }
    readonly volumes: readonly { readonly name: string }[]
  }
}

interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data?: Variables
  // The fields depend on the kind of object.
  readonly spec: {
    readonly template: Template
    readonly selector: { readonly matchLabels: Variables }
    readonly podFailurePolicy: {
      readonly rules: readonly {
        readonly onExitCodes: { readonly containerName: string; readonly values: readonly number[] }
      }[]
    }
    readonly ports: readonly { readonly targetPort: string }[]
    readonly podSelector: { readonly matchLabels: Variables }
    readonly policyTypes: readonly string[]
    readonly ingress?: readonly { readonly ports: readonly { readonly port: string }[] }[]
    readonly scaleTargetRef: { readonly name: string }
    readonly triggers: readonly { readonly type: string; readonly metadata: { readonly query: string } }[]
  }
}

const API_VERSIONS: Variables = {
  ConfigMap: 'v1',
  Service: 'v1',
  Deployment: 'apps/v1',
  Job: 'batch/v1',
  NetworkPolicy: 'networking.k8s.io/v1',
  PodDisruptionBudget: 'policy/v1',
  ScaledObject: 'keda.sh/v1alpha1',
}
const FOLDER = 'deploy/kubernetes'

const queues = queuesOf(await loadTasks())
const files = readdirSync(new URL(FOLDER, ROOT)).filter((name) => name !== 'kustomization.yaml')
const objects = files.flatMap((name) =>
  parseAllDocuments(readFileAt(`${FOLDER}/${name}`)).map((document) => {
    assert.deepEqual(document.errors, [], name)
    return document.toJS() as KubernetesObject
  }),
)
const findObjects = (name: string): KubernetesObject[] => objects.filter((object) => object.kind === name)
const pods = [...findObjects('Deployment'), ...findObjects('Job')].map(({ metadata, spec }) => ({
  name: metadata.name,
  ...spec.template,
  container: spec.template.spec.containers[0]!,
}))
const settings = findObjects('ConfigMap')[0]!.data!
const readQueues = (container: Container): string[] | undefined =>
  container.env?.find(({ name }) => name === 'WORKER_QUEUES')?.value.split(',')

describe('the Kubernetes example', () => {
  test('has kinds and names, and all files are in Kustomize', () => {
    for (const { apiVersion, kind: name, metadata } of objects) {
      assert.equal(apiVersion, API_VERSIONS[name], name)
      assert.match(metadata.name, /^millrace(-[a-z]+)*$/)
    }
    const list = parseYaml(readFileAt(`${FOLDER}/kustomization.yaml`)) as {
      resources: string[]
      images: { name: string }[]
    }
    assert.deepEqual(list.resources.toSorted(), files.toSorted())
    assert.deepEqual(
      list.images.map(({ name }) => name),
      [...new Set(pods.map(({ container }) => container.image))],
    )
  })

  test('has a pod for every Procfile line, not as root and with a read-only image', () => {
    assert.deepEqual(new Set(pods.flatMap(({ container }) => container.args)), new Set(procfileLines.keys()))
    for (const { name, container, spec } of pods) {
      assert.equal(spec.containers.length, 1, name)
      assert.ok(spec.securityContext.runAsNonRoot && spec.securityContext.runAsUser > 0, name)
      assert.deepEqual(
        container.securityContext,
        { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        name,
      )
      const written = container.args[0] === 'release' ? ['/tmp'] : ['/tmp', '/data']
      assert.deepEqual(
        container.volumeMounts.map(({ mountPath }) => mountPath),
        written,
        name,
      )
      assert.deepEqual(
        container.volumeMounts.map((mount) => mount.name),
        spec.volumes.map((volume) => volume.name),
        name,
      )
    }
  })

  test('starts the pods with valid settings', () => {
    const sources = [{ configMapRef: { name: 'millrace' } }, { secretRef: { name: 'millrace' } }]
    const secrets = {
      SECRET_KEY: 'a secret for tests, long enough to be one',
      DATABASE_URL: 'postgresql://mill:secret@db/mill',
    }
    assert.equal(findObjects('ConfigMap')[0]!.metadata.name, 'millrace')
    for (const { name, container } of pods) {
      // A later source overrides earlier ones: the release uses the owner's database URL.
      const more = container.args[0] === 'release' ? [{ secretRef: { name: 'millrace-release' } }] : []
      assert.deepEqual(container.envFrom, [...sources, ...more], name)
      const own = Object.fromEntries((container.env ?? []).map((set) => [set.name, set.value]))
      assertKnownNames({ ...settings, ...own }, name)
      parseSettings({ NODE_ENV: 'production', ...settings, ...secrets, ...own })
    }
  })

  test('serves every queue once', () => {
    const served = pods.flatMap(({ container }) => readQueues(container) ?? [])
    assertListed(queues, served, [findLine('deploy/kubernetes/worker.yaml', '- name: WORKER_QUEUES')])
  })

  test('probes an edge at existing paths and ports', () => {
    const { container, metadata } = pods.find((pod) => pod.container.args[0] === 'web')!
    const portOf = (name: string) => container.ports!.find((port) => port.name === name)?.containerPort
    assert.equal(portOf('http'), parseSettings({}).port)
    assert.equal(String(portOf('metrics')), settings.METRICS_PORT)
    assert.equal(metadata.annotations!['prometheus.io/port'], settings.METRICS_PORT)
    for (const path of ['/metrics', '/ready', '/health']) assert.ok(operationPaths.includes(path), path)
    assert.equal(metadata.annotations!['prometheus.io/path'], '/metrics')
    assert.deepEqual(container.readinessProbe!.httpGet, { path: '/ready', port: 'http' })
    assert.deepEqual(container.livenessProbe!.httpGet, { path: '/health', port: 'http' })
    assert.equal(findObjects('Service')[0]!.spec.ports[0]!.targetPort, 'http')
  })

  test('gives an edge time to wait for its database before it listens', () => {
    const { httpGet, periodSeconds, failureThreshold } = pods.find(({ name }) => name === 'millrace-web')!
      .container.startupProbe!
    assert.deepEqual(httpGet, { path: '/health', port: 'http' })
    assert.ok(periodSeconds * failureThreshold >= 3600)
  })

  test('gives the pods time to stop', () => {
    for (const { name, container, spec } of pods.filter((pod) => pod.container.args[0] !== 'release')) {
      const [command, before = '0'] = container.lifecycle?.preStop.exec.command ?? []
      assert.equal(command, container.args[0] === 'web' ? 'sleep' : undefined, name)
      assert.ok(spec.terminationGracePeriodSeconds! - Number(before) > STOP_SECONDS, name)
    }
  })

  test('retries a release, unless that is pointless', () => {
    const { template, podFailurePolicy } = findObjects('Job')[0]!.spec
    const { containerName, values } = podFailurePolicy.rules[0]!.onExitCodes
    assert.equal(containerName, template.spec.containers[0]!.name)
    assert.deepEqual(values, [START_REFUSED_STATUS])
  })

  test('selects existing pods', () => {
    const labelled = pods.map(({ metadata }) => JSON.stringify(metadata.labels))
    assert.equal(new Set(labelled).size, pods.length)
    for (const { metadata, spec } of findObjects('Deployment'))
      assert.deepEqual(spec.selector.matchLabels, spec.template.metadata.labels, metadata.name)
    for (const { metadata, spec } of [...findObjects('PodDisruptionBudget'), ...findObjects('Service')]) {
      const labels = spec.selector.matchLabels ?? spec.selector
      assert.ok(labelled.includes(JSON.stringify(labels)), metadata.name)
    }
  })

  test('admits only the traffic that edges serve', () => {
    const [all, web] = findObjects('NetworkPolicy').map(({ spec }) => spec)
    assert.deepEqual(all!.podSelector.matchLabels, { app: 'millrace' })
    assert.deepEqual([all!.policyTypes, all!.ingress], [['Ingress', 'Egress'], undefined])
    const { container, metadata } = pods.find((pod) => pod.container.args[0] === 'web')!
    assert.deepEqual(web!.podSelector.matchLabels, metadata.labels)
    assert.deepEqual(
      web!.ingress!.flatMap(({ ports }) => ports.map(({ port }) => port)),
      container.ports!.map(({ name }) => name),
    )
  })

  test('scales workers by the metric of their queues', () => {
    const source = readFileAt('edge/metrics/metrics.ts')
    assert.match(source, /name: 'jobs',[^}]*labelNames: \['queue', 'status'\]/s)
    assert.ok(source.includes("status: 'queued'"))
    const scaled = findObjects('ScaledObject')
    const workers = pods.filter(({ container }) => container.args[0] === 'worker')
    assert.equal(scaled.length, workers.length)
    for (const { spec } of scaled) {
      const { container } = workers.find(({ name }) => name === spec.scaleTargetRef.name)!
      const { query } = spec.triggers[0]!.metadata
      const [, names] = /jobs\{job="millrace",status="queued",queue=~"([a-z_|]+)"\}/.exec(query)!
      // Callers choose the names of worker queues, whose jobs these workers do not run.
      const counted = queues.filter((queue) => names!.split('|').includes(queue))
      assert.equal(counted.length, names!.split('|').length)
      // The jobs of this queue wait for the times of schedules, and say nothing about the load.
      const loaded = readQueues(container)!.filter((queue) => queue !== 'schedules')
      assert.deepEqual(counted.toSorted(), loaded.toSorted(), query)
    }
  })
})
