import type { TestApp, TestReply } from '../harness/app.ts'

const tokenType = (name: string) => `urn:ietf:params:oauth:token-type:${name}`
/** The two parameters of every exchange. */
export const exchangeParameters = { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token_type: tokenType('jwt') }

type Form = Readonly<Record<string, string | readonly string[] | undefined>>

/** Posts a form. The value undefined leaves a parameter out, and a list repeats it. */
export function postForm(
  app: Pick<TestApp, 'call'>,
  path: string,
  form: Form,
  options: { token?: string | null; headers?: Record<string, string> } = {},
): Promise<TestReply> {
  const body = new URLSearchParams()
  for (const [name, value] of Object.entries(form)) for (const each of [value].flat()) if (each !== undefined) body.append(name, each)
  return app.call('POST', path, body.toString(), {
    token: options.token ?? null,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...options.headers },
  })
}

/** Exchanges a subject token. */
export const exchange = (app: Pick<TestApp, 'call'>, subjectToken: string, more: Form = {}): Promise<TestReply> =>
  postForm(app, '/oauth/token', { ...exchangeParameters, subject_token: subjectToken, ...more })

/** Returns the status and error code of a refusal as one text. */
export const refusal = ({ status, json }: TestReply): string => `${status} ${json?.error}`
