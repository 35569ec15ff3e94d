/**
 * The interfaces of `wit/` as componentize-qjs binds them: `option` is null for none, u64 and s64
 * are numbers (exact to 2^53), a `result` is answered or thrown. What each call means, its units,
 * limits and errors are said in `wit/`, by the same names.
 */

declare module "oncue:handler/types@0.1.0" {
  /** Milliseconds since 1970-01-01T00:00:00Z. All durations are milliseconds as well. */
  export type Timestamp = number;

  export interface Metadata {
    id: string;
    correlationId: string | null;
    replyTo: string | null;
    group: string | null;
    groupSequence: number | null;
    priority: number;
    persistent: boolean;
    contentType: string | null;
    properties: [string, string][];
    putTime: Timestamp;
    expires: Timestamp | null;
    backoutCount: number;
    attemptsLeft: number;
    hopCount: number;
    putBy: string | null;
    size: number;
  }

  /** Why a call was refused. Each text is a whole sentence for a person. */
  export type RefusedCall =
    | { tag: "full"; val: string }
    | { tag: "not-granted"; val: string }
    | { tag: "unknown-queue"; val: string }
    | { tag: "too-large"; val: string }
    | { tag: "not-text" }
    | { tag: "other"; val: string };

  /** What a refused call throws. */
  export interface CallError extends Error {
    payload?: RefusedCall;
  }

  /** A message in hand. The body stays with the manager until it is asked for. */
  export class Message {
    private constructor();
    metadata(): Metadata;
    body(): Uint8Array;
    /** The body as text. Throws `not-text` if it is not valid UTF-8. */
    text(): string;
    read(offset: number, length: number): Uint8Array;
    /** Frees the handle; settles nothing. */
    [Symbol.dispose](): void;
  }

  export type Content = { tag: "bytes"; val: Uint8Array } | { tag: "text"; val: string };

  /** What may be left out takes the queue's default. */
  export interface PutOptions {
    correlationId?: string | null;
    replyTo?: string | null;
    group?: string | null;
    groupSequence?: number | null;
    priority?: number | null;
    persistent?: boolean | null;
    contentType?: string | null;
    properties: [string, string][];
    delay?: number | null;
    expiry?: number | null;
    idempotencyKey?: string | null;
  }

  export type TriggerType = "first" | "every" | "depth";

  export interface TriggerMessage {
    manager: string;
    queue: string;
    process: string;
    triggerType: TriggerType;
    triggerData: string;
    applicationId: string;
    environmentData: string;
    userData: string;
    depth: number;
    sequence: number;
    firedAt: Timestamp;
  }

  export interface Retry {
    reason: string;
    after: number | null;
  }

  /** What a handler throws to say that it did not succeed. Anything else thrown is a trap. */
  export type Failure =
    | { tag: "retry"; val: Retry }
    | { tag: "reject"; val: string }
    | { tag: "defer"; val: number };
}

declare module "oncue:handler/on-owned-message@0.1.0" {
  import type { Message } from "oncue:handler/types@0.1.0";

  /** Export a constant `onOwnedMessage` of this type. */
  export interface OnOwnedMessage {
    /** Handles one message. Returning commits; throwing a `Failure` undoes. */
    handle(message: Message): void;
  }
}

declare module "oncue:handler/on-trigger@0.1.0" {
  import type { TriggerMessage } from "oncue:handler/types@0.1.0";

  /** Export a constant `onTrigger` of this type. */
  export interface OnTrigger {
    /** Works the triggered queue until `get` answers `empty` or `stop`. */
    handle(trigger: TriggerMessage): void;
  }
}

declare module "oncue:handler/queues@0.1.0" {
  import type { Content, Message, Metadata, PutOptions } from "oncue:handler/types@0.1.0";

  export interface GetOptions {
    queue?: string | null;
    wait?: number | null;
    id?: string | null;
    correlationId?: string | null;
  }

  export type Got = { tag: "message"; val: Message } | { tag: "empty" } | { tag: "stop" };

  export interface Page {
    messages: Metadata[];
    next: string | null;
  }

  export function get(options: GetOptions): Got;
  export function browse(queue: string, cursor: string | null, max: number): Page;
  /** Answers the new message's id. */
  export function put(queue: string, content: Content, options: PutOptions): string;
  /** Asks and waits, at most `wait` milliseconds, for the answer. */
  export function request(
    queue: string,
    content: Content,
    options: PutOptions,
    wait: number,
  ): Message;
  /** Puts a message on as it is; answers the new message's id. */
  export function forward(message: Message, queue: string): string;
  export function depth(queue: string): number;
}

declare module "oncue:handler/unit-of-work@0.1.0" {
  export function commit(): void;
  export function backout(): void;
}

declare module "oncue:handler/budget@0.1.0" {
  export function fuelLeft(): number;
  export function timeLeft(): number;
}

declare module "wasi:keyvalue/store@0.2.0-draft2" {
  export interface KeyResponse {
    keys: string[];
    cursor: string | null;
  }

  export class Bucket {
    private constructor();
    get(key: string): Uint8Array | null;
    set(key: string, value: Uint8Array): void;
    delete(key: string): void;
    exists(key: string): boolean;
    listKeys(cursor: string | null): KeyResponse;
    [Symbol.dispose](): void;
  }

  /** State: the one bucket is `default`. */
  export function open(identifier: string): Bucket;
}

declare module "wasi:keyvalue/atomics@0.2.0-draft2" {
  import type { Bucket } from "wasi:keyvalue/store@0.2.0-draft2";

  export class Cas {
    private constructor();
    static new(bucket: Bucket, key: string): Cas;
    current(): Uint8Array | null;
    [Symbol.dispose](): void;
  }

  export function increment(bucket: Bucket, key: string, delta: number): number;
  export function swap(cas: Cas, value: Uint8Array): void;
}

declare module "wasi:logging/logging@0.1.0-draft" {
  export type Level = "trace" | "debug" | "info" | "warn" | "error" | "critical";
  export function log(level: Level, context: string, message: string): void;
}

declare module "wasi:config/store@0.2.0-rc.1" {
  export function get(key: string): string | null;
  export function getAll(): [string, string][];
}
