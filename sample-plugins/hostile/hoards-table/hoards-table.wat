;; Grows its table of function references until there is no more room, then calls into the void.
;;
;; Written by hand, since no Rust code can grow a table. A table costs the host memory that the
;; guest's memory limit does not count. The growth past `table-elements` is denied (`table.grow`
;; answers -1), and this traps then: ends as `over-memory`, as denied memory does.
;;
;; hoards-table.wasm is this text assembled; after a change, assemble it again with
;; `wasm-tools parse hoards-table.wat -o hoards-table.wasm`.
(component
  ;; As much of `oncue:handler/types` as `on-message` speaks of.
  (import "oncue:handler/types@0.1.0" (instance $types
    (export "message" (type (sub resource)))
    (type $retry-shape (record (field "reason" string) (field "after" (option u64))))
    (export "retry" (type $retry (eq $retry-shape)))
    (type $failure-shape
      (variant (case "retry" $retry) (case "reject" string) (case "defer" u64)))
    (export "failure" (type (eq $failure-shape)))))
  (alias export $types "message" (type $message))
  (alias export $types "retry" (type $retry))
  (alias export $types "failure" (type $failure))

  (core module $code
    (memory (export "memory") 1)
    (table $hoard 1 funcref)
    ;; handle(message) -> where the result lies
    (func (export "handle") (param i32) (result i32)
      (loop $more
        (table.grow $hoard (ref.null func) (i32.const 100))
        i32.const -1
        i32.ne
        br_if $more)
      unreachable))
  (core instance $running (instantiate $code))
  (type $handle (func (param "message" (borrow $message)) (result (result (error $failure)))))
  (func $handle (type $handle)
    (canon lift (core func $running "handle") (memory (core memory $running "memory"))))

  ;; The exported interface names the types that its function uses; only a component can export
  ;; a type under a name and a function that refers to it by that name.
  (component $interface
    (import "type-message" (type $message (sub resource)))
    (type $retry-shape (record (field "reason" string) (field "after" (option u64))))
    (import "type-retry" (type $retry (eq $retry-shape)))
    (type $failure-shape
      (variant (case "retry" $retry) (case "reject" string) (case "defer" u64)))
    (import "type-failure" (type $failure (eq $failure-shape)))
    (import "func-handle" (func $handle
      (param "message" (borrow $message)) (result (result (error $failure)))))
    (export $message-out "message" (type $message))
    (export $failure-out "failure" (type $failure))
    (export "handle" (func $handle)
      (func (param "message" (borrow $message-out)) (result (result (error $failure-out))))))
  (instance $on-message (instantiate $interface
    (with "type-message" (type $message))
    (with "type-retry" (type $retry))
    (with "type-failure" (type $failure))
    (with "func-handle" (func $handle))))
  (export "oncue:handler/on-message@0.1.0" (instance $on-message)))
