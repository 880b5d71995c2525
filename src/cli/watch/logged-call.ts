/** What is kept of a call, without content. */
export interface LoggedCall {
  readonly id: string
  readonly at: string
  readonly model: string
  readonly agent_name: string | null
  readonly agent_label: string | null
  readonly key_name: string | null
  readonly outcome: string
  readonly status: number
  readonly latency_ms: number
  readonly cost_inr: number
  readonly request_id: string
}
