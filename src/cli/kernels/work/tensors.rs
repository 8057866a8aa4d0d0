//! Describes the tensors of a kernel: number and type of elements, and how inputs are filled.

use vramscope_benchmark::Precision;

/// Random contents of an input; the seed is its index among the inputs, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fill {
    /// Numbers of the input's type, at most `scale` away from `offset`.
    Uniform {
        /// Half the width of the range.
        scale: f32,
        /// Centre of the range.
        offset: f32,
    },
    /// 32-bit classes below this number.
    Labels(u64),
    /// Bytes: one for each negative random number, else zero.
    Mask,
}

/// Type of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// The kernel's type.
    Own,
    /// This type, regardless of the kernel's.
    Of(Precision),
    /// Bytes with value 0 or 1.
    Byte,
    /// 32-bit integers.
    Label,
}

/// An input tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input {
    /// Number of elements.
    pub elements: u64,
    /// Type of the elements.
    pub element: Element,
    /// Contents.
    pub fill: Fill,
}

/// An output tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Number of elements.
    pub elements: u64,
    /// Type of the elements.
    pub element: Element,
}

impl Element {
    /// The numeric type of the elements; `None` if they are bytes or labels.
    pub const fn precision(self, own: Precision) -> Option<Precision> {
        match self {
            Self::Own => Some(own),
            Self::Of(precision) => Some(precision),
            Self::Byte | Self::Label => None,
        }
    }

    /// Bytes per element.
    pub const fn width(self, own: Precision) -> u64 {
        match self {
            Self::Own => own.width(),
            Self::Of(precision) => precision.width(),
            Self::Byte => 1,
            Self::Label => 4,
        }
    }
}

impl Input {
    /// Scale at which inputs have a standard deviation of 1, as `torch.randn`: uniform from −√3 to √3.
    pub(super) const UNIT: f32 = 1.732_050_8;

    pub(super) const fn unit(elements: u64) -> Self {
        Self::around(elements, Self::UNIT, 0.0)
    }

    pub(super) const fn around(elements: u64, scale: f32, offset: f32) -> Self {
        Self {
            elements,
            element: Element::Own,
            fill: Fill::Uniform { scale, offset },
        }
    }

    /// An input in fp32, regardless of the kernel's type: statistics of rows.
    pub(super) const fn floats(elements: u64, scale: f32, offset: f32) -> Self {
        Self {
            elements,
            element: Element::Of(Precision::Fp32),
            fill: Fill::Uniform { scale, offset },
        }
    }

    pub(super) const fn labels(elements: u64, classes: u64) -> Self {
        Self {
            elements,
            element: Element::Label,
            fill: Fill::Labels(classes),
        }
    }

    pub(super) const fn mask(elements: u64) -> Self {
        Self {
            elements,
            element: Element::Byte,
            fill: Fill::Mask,
        }
    }

    /// Size in bytes.
    pub const fn bytes(&self, precision: Precision) -> u64 {
        self.elements * self.element.width(precision)
    }
}

impl Output {
    pub(super) const fn of(elements: u64) -> Self {
        Self {
            elements,
            element: Element::Own,
        }
    }

    pub(super) const fn float(elements: u64) -> Self {
        Self {
            elements,
            element: Element::Of(Precision::Fp32),
        }
    }

    pub(super) const fn bytes_of(elements: u64) -> Self {
        Self {
            elements,
            element: Element::Byte,
        }
    }

    /// An output of the other width, as in an autocast: fp32 for halves, bf16 for fp32.
    pub(super) const fn cast(elements: u64, from: Precision) -> Self {
        let to = match from {
            Precision::Bf16 | Precision::Fp16 => Precision::Fp32,
            Precision::Tf32 | Precision::Fp32 => Precision::Bf16,
        };
        Self {
            elements,
            element: Element::Of(to),
        }
    }

    /// Size in bytes.
    pub const fn bytes(&self, precision: Precision) -> u64 {
        self.elements * self.element.width(precision)
    }
}
