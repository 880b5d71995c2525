/** What a person names of a workload, for each platform, and what a rule says then. */

export const platforms = ['github', 'gitlab', 'kubernetes', 'other'] as const
export type Platform = (typeof platforms)[number]

/** How narrow the rule of a repository is. */
export const refKinds = ['branch', 'environment', 'any'] as const
export type RefKind = (typeof refKinds)[number]

/** What was typed. Each platform uses some of the fields, and what was typed stays while another one is chosen. */
export interface Workload {
  readonly platform: Platform
  readonly repository: string
  readonly refKind: RefKind
  readonly ref: string
  readonly issuer: string
  readonly namespace: string
  readonly account: string
  readonly subject: string
}

export const emptyWorkload: Workload = {
  platform: 'github',
  repository: '',
  refKind: 'branch',
  ref: 'main',
  issuer: '',
  namespace: 'default',
  account: '',
  subject: '',
}

export const githubIssuer = 'https://token.actions.githubusercontent.com'
export const gitlabIssuer = 'https://gitlab.com'

/** The issuer and the subject of a rule, or null while something is missing. */
export interface Conditions {
  readonly name: string
  readonly issuer: string
  readonly subject: string
}

function refOf({ refKind, ref }: Workload): string | null {
  if (refKind === 'any') return '*'
  const name = ref.trim()
  return name === '' ? null : name
}

function githubOf(workload: Workload): Conditions | null {
  const [repository, ref] = [workload.repository.trim(), refOf(workload)]
  if (!/^[^/\s]+\/[^/\s]+$/.test(repository) || ref === null) return null
  const rest = { branch: `ref:refs/heads/${ref}`, environment: `environment:${ref}`, any: '*' }[workload.refKind]
  return { name: `GitHub ${repository}`, issuer: githubIssuer, subject: `repo:${repository}:${rest}` }
}

function gitlabOf(workload: Workload): Conditions | null {
  const [project, ref] = [workload.repository.trim(), refOf(workload)]
  if (!/^[^/\s]+(\/[^/\s]+)+$/.test(project) || ref === null) return null
  const rest = workload.refKind === 'any' ? '*' : `ref_type:branch:ref:${ref}`
  return {
    name: `GitLab ${project}`,
    issuer: workload.issuer.trim() === '' ? gitlabIssuer : workload.issuer.trim(),
    subject: `project_path:${project}:${rest}`,
  }
}

function kubernetesOf({ issuer, namespace, account }: Workload): Conditions | null {
  const parts = [issuer, namespace, account].map(part => part.trim())
  if (parts.includes('')) return null
  return { name: `Kubernetes ${parts[1]}/${parts[2]}`, issuer: parts[0] ?? '', subject: `system:serviceaccount:${parts[1]}:${parts[2]}` }
}

/** Returns what a rule says for a workload. Null while something is missing. */
export function conditionsOf(workload: Workload): Conditions | null {
  switch (workload.platform) {
    case 'github':
      return githubOf(workload)
    case 'gitlab':
      return gitlabOf(workload)
    case 'kubernetes':
      return kubernetesOf(workload)
    case 'other': {
      const [issuer, subject] = [workload.issuer.trim(), workload.subject.trim()]
      return issuer === '' || subject === '' ? null : { name: URL.canParse(issuer) ? new URL(issuer).host : issuer, issuer, subject }
    }
  }
}
